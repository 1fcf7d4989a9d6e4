import type { ClaimRequest, Consumer, Engine, Subscription } from '../../../src/engine/engine.ts'
import type { Lease } from '../../../src/engine/outcome.ts'
import { effectiveRank } from '../../../src/job/ageing.ts'
import type { JobView } from '../../../src/job/job.ts'
import { allJobs, answered, viewsOf, type WaitingClaim, type Watch } from './watch.ts'

export interface Watched {
  readonly engine: Engine
  readonly consumer: Consumer
  readonly subscription: Subscription
  readonly watch: Watch
  /** Whether the holder of a lease was told that it is lost; null when it does not listen any more. */
  wasTold(token: string): () => boolean | null
}

/** When the work of the clock's timers is done: at the end of the step in which something happened. */
export type AtRest = (judge: () => void) => void

export function watchClaim(watched: Watched, isClosed: () => boolean, atRest: AtRest): Consumer['claim'] {
  const { consumer, subscription, watch } = watched
  return async (request) => {
    const startedMs = watch.clock.monotonicMs()
    let isOver = false
    const isEnded = (): boolean => isOver
    const types = subscription.types === 'every' ? [] : subscription.types.map(({ type }) => type)
    const waiting: WaitingClaim = { types, perType: request.perType ?? {}, isOver: isEnded }
    if (request.waitMs > 0 && request.from !== 'expired') watch.claims.add(waiting)
    const mustEnd = (): void =>
      atRest(() => watch.expect(isOver, null, () => `a claim of ${subscription.worker} was told to end and waits on`))
    request.signal.addEventListener('abort', mustEnd, { once: true })
    try {
      const leases = await answered(watch, 'a claim', () => consumer.claim(request))
      const waitedMs = watch.clock.monotonicMs() - startedMs
      watch.expect(waitedMs <= request.waitMs, null, () => `a claim of ${request.waitMs} ms took ${waitedMs} ms`)
      watch.expect(!isClosed() || leases.length === 0, null, () => `${subscription.worker} has left and was given jobs`)
      await judgeLeases(watched, request, leases)
      return leases
    } finally {
      isOver = true
      watch.claims.delete(waiting)
      request.signal.removeEventListener('abort', mustEnd)
    }
  }
}

async function judgeLeases(watched: Watched, request: ClaimRequest, leases: readonly Lease[]): Promise<void> {
  const { engine, subscription, watch } = watched
  const from = request.from ?? 'ready'
  judgeBounds(watched, request, leases)
  const jobs = leases.length === 0 ? [] : await allJobs(engine)
  const views = new Map(jobs.map((view) => [view.id, view]))
  for (const lease of leases) {
    const { id } = lease.job
    const held = watch.leases.get(id)
    const isFree = held === undefined || held.isSettling || held.untilMs <= watch.clock.monotonicMs()
    watch.expect(isFree, id, () => `${id} was handed out (${from}) while another lease of it lasts`)
    if (from === 'expired') watch.expect(held !== undefined, id, () => `${id} was reaped, and was not leased`)
    watch.expect(!watch.tokens.has(lease.token), id, () => `the token of ${id} was used before`)
    watch.tokens.add(lease.token)
    judgeLease(watch, lease, views.get(id), { subscription, from })
    const wasTold = watched.wasTold(lease.token)
    const untilMs = (lease.expiresAtMs ?? Number.POSITIVE_INFINITY) - watch.clock.nowMs() + watch.clock.monotonicMs()
    watch.leases.set(id, { token: lease.token, untilMs, isSettling: false, wasTold })
  }
  if (from === 'ready') judgeOrder(watched, request, { leases, jobs })
}

function judgeBounds({ subscription, watch }: Watched, request: ClaimRequest, leases: readonly Lease[]): void {
  const { max, perType = {} } = request
  const { types, worker } = subscription
  watch.expect(leases.length <= max, null, () => `${worker} asked for ${max} jobs and was given ${leases.length}`)
  for (const type of new Set(leases.map(({ job }) => job.type))) {
    const count = leases.filter(({ job }) => job.type === type).length
    const bound = perType[type] ?? max
    watch.expect(count <= bound, null, () => `${worker} asked for ${bound} of '${type}' and was given ${count}`)
    const isSubscribed = types === 'every' || types.some((each) => each.type === type)
    watch.expect(isSubscribed, null, () => `${worker} was given a job of '${type}', to which it has not subscribed`)
  }
}

interface Given {
  readonly subscription: Subscription
  readonly from: 'ready' | 'expired'
}

/** A lease is what the store has, and lasts as long as was asked for. */
function judgeLease(watch: Watch, lease: Lease, view: JobView | undefined, { subscription, from }: Given): void {
  const { job, attempt, expiresAtMs } = lease
  const nowMs = watch.clock.nowMs()
  watch.expect(view !== undefined, job.id, () => `${job.id} was handed out and is not there`)
  if (view === undefined) return
  const found = { owner: view.leaseOwner, untilMs: view.leaseUntilMs, state: view.state, attempt: view.attempt }
  const given = { owner: subscription.worker, untilMs: expiresAtMs, state: 'in_progress', attempt }
  watch.same(job.id, `the claimed job ${job.id}`, found, given)
  const { payload, options, priority, tenant, after, runAtMs } = view
  const { payload: text, options: own, priority: rank, tenant: whose, after: behind, runAtMs: dueMs } = job
  watch.same(
    job.id,
    `the job ${job.id} as it was handed out`,
    { payload: text, options: own, priority: rank, tenant: whose, after: behind, runAtMs: dueMs },
    { payload, options, priority, tenant, after, runAtMs },
  )
  if (from === 'expired' || subscription.types === 'every') return
  watch.expect(dueMs <= nowMs, job.id, () => `${job.id} was handed out ${dueMs - nowMs} ms before its time`)
  const leaseMs = subscription.types.find(({ type }) => type === job.type)?.leaseMs
  if (leaseMs !== undefined) watch.same(job.id, `the lease of ${job.id} in ms`, (expiresAtMs ?? 0) - nowMs, leaseMs)
}

/** The most urgent first, and nothing more urgent left behind. */
function judgeOrder(
  { subscription, watch }: Watched,
  { perType = {} }: ClaimRequest,
  { leases, jobs }: { readonly leases: readonly Lease[]; readonly jobs: readonly JobView[] },
): void {
  const nowMs = watch.clock.nowMs()
  const { ageingMs = null, types } = subscription
  const urgencyOf = ({ priority, runAtMs }: { readonly priority: number; readonly runAtMs: number }) =>
    effectiveRank(priority, nowMs - runAtMs, ageingMs)
  // Where tenants have slots of their own, their jobs stand in another order.
  const isByTenant = (type: string): boolean =>
    types !== 'every' && types.some((each) => each.type === type && each.slots?.by === 'tenant')
  const ranks = leases.filter(({ job }) => !isByTenant(job.type)).map(({ job }) => urgencyOf(job))
  const isOrdered = ranks.every((rank, index) => index === 0 || (ranks[index - 1] ?? 0) <= rank)
  watch.expect(isOrdered, null, () => `a claim of ${subscription.worker} was given ranks ${ranks.join(', ')}`)
  const last = Math.max(...ranks)
  if (ranks.length === 0 || types === 'every') return
  const isOpen = (type: string): boolean =>
    types.some((each) => each.type === type && each.limit === undefined && each.slots === undefined) &&
    perType[type] === undefined
  for (const view of jobs) {
    const isMissed =
      isClaimable(view, nowMs) &&
      isOpen(view.type) &&
      urgencyOf(view) < last &&
      !leases.some(({ job }) => job.id === view.id)
    watch.expect(!isMissed, view.id, () => `${view.id} is more urgent than a job that was handed out before it`)
  }
}

/** Queued, due, and not held back by another job as far as can be seen from outside. */
export function isClaimable({ state, runAtMs, after, latestKey }: JobView, nowMs: number): boolean {
  return state === 'queued' && runAtMs < nowMs && after === null && latestKey === null
}

export function watchRenew({ engine, consumer, watch }: Watched): Consumer['renew'] {
  return async (leases, leaseMs) => {
    const lost = await answered(watch, 'a renewal', () => consumer.renew(leases, leaseMs))
    const views = await viewsOf(
      engine,
      leases.map(({ job }) => job.id),
    )
    for (const { job, token } of leases) {
      const isLost = lost.some(({ lease }) => lease.token === token && lease.job.id === job.id)
      const isHeld = watch.holds(job.id, token)
      watch.expect(
        isLost !== isHeld,
        job.id,
        () => `a renewal of ${job.id} said ${isLost ? 'lost' : 'held'}, which is wrong`,
      )
      const other = watch.leases.get(job.id)
      // A worker may renew two leases of one job in one call, of which only the newer is held.
      const isOthers = !leases.some((lease) => lease.token === other?.token)
      if (isLost && other !== undefined && isOthers && watch.setMs < 0) {
        const found = views.get(job.id)?.leaseUntilMs
        watch.same(
          job.id,
          `the end of the lease of ${job.id}, after a renewal by another`,
          found,
          wallEnd(watch, job.id),
        )
      }
      if (isLost || !isHeld) continue
      const untilMs = watch.clock.nowMs() + leaseMs
      watch.same(job.id, `the end of the renewed lease of ${job.id}`, views.get(job.id)?.leaseUntilMs, untilMs)
      const held = watch.leases.get(job.id)
      if (held !== undefined) held.untilMs = watch.clock.monotonicMs() + leaseMs
    }
    return lost
  }
}

export function watchReport({ engine, consumer, watch }: Watched): Consumer['report'] {
  return async (lease, progress) => {
    const isHeld = watch.holds(lease.job.id, lease.token)
    const isTaken = await answered(watch, 'a report', () => consumer.report(lease, progress))
    const { id } = lease.job
    watch.same(id, `the answer to progress of ${id}`, isTaken, isHeld)
    const view = (await viewsOf(engine, [id])).get(id)
    if (isTaken) watch.same(id, `the progress of ${id}`, view?.progress, JSON.parse(progress))
    if (isTaken) watch.same(id, `the end of the lease of ${id}, after progress`, view?.leaseUntilMs, wallEnd(watch, id))
    return isTaken
  }
}

function wallEnd({ leases, clock }: Watch, id: string): number {
  return (leases.get(id)?.untilMs ?? 0) - clock.monotonicMs() + clock.nowMs()
}
