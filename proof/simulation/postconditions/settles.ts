import type { Consumer } from '../../../src/engine/engine.ts'
import type { Lease, NotApplied, Settlement } from '../../../src/engine/outcome.ts'
import { isBeyondKeepLimit } from '../../../src/engine/retention.ts'
import type { JobView } from '../../../src/job/job.ts'
import type { Watched } from './claims.ts'
import { allJobs, answered, judgeUnchanged, type Watch } from './watch.ts'

export function watchSettle({ engine, consumer, watch }: Watched): Consumer['settle'] {
  return async (settlements) => {
    const before = byId(await allJobs(engine))
    const held = settlements.map(({ lease }) => watch.holds(lease.job.id, lease.token))
    for (const { lease } of settlements) markSettling(watch, lease, true)
    const refused = await answered(watch, 'a settle', () => consumer.settle(settlements))
    const after = byId(await allJobs(engine))
    for (const [index, settlement] of settlements.entries()) {
      const isHeld = held[index] === true
      const isSettledToo = settlements.some(
        ({ lease }, at) => held[at] === true && lease.job.id === settlement.lease.job.id,
      )
      judgeSettlement(watch, settlement, { refused, isHeld, isSettledToo, before, after })
      const { job, token } = settlement.lease
      markSettling(watch, settlement.lease, false)
      if (isHeld && watch.leases.get(job.id)?.token === token) watch.leases.delete(job.id)
    }
    judgeRemoved(watch, { settlements, refused, before, after })
    return refused
  }
}

function markSettling(watch: Watch, { job, token }: Lease, isSettling: boolean): void {
  const held = watch.leases.get(job.id)
  if (held?.token === token && watch.holds(job.id, token)) held.isSettling = isSettling
}

type Jobs = ReadonlyMap<string, JobView>

const byId = (jobs: readonly JobView[]): Jobs => new Map(jobs.map((view) => [view.id, view]))

interface Around {
  readonly refused: readonly NotApplied[]
  readonly isHeld: boolean
  /** The batch settles the job under the lease that holds it. */
  readonly isSettledToo: boolean
  readonly before: Jobs
  readonly after: Jobs
}

function judgeSettlement(watch: Watch, { lease, outcome }: Settlement, around: Around): void {
  const { refused, isHeld, isSettledToo, before, after } = around
  const { id } = lease.job
  const isRefused = refused.some((each) => each.lease.token === lease.token && each.lease.job.id === id)
  watch.expect(
    isRefused !== isHeld,
    id,
    () => `a settle of ${id} was ${isRefused ? 'refused' : 'taken'}, which is wrong`,
  )
  const view = after.get(id)
  if (isRefused || !isHeld) {
    // What waits in the engine may have claimed or been given another of its starts meanwhile.
    if (!isSettledToo && view?.state === before.get(id)?.state)
      judgeUnchanged(watch, { id, what: 'settle' }, view, before.get(id))
    return
  }
  // A job that may go, went; a version for which a newer one waits is superseded.
  if (view === undefined || view.state === 'superseded') return
  switch (outcome.kind) {
    case 'complete':
      watch.same(id, `the completed job ${id}`, [view.state, view.result], ['completed', JSON.parse(outcome.result)])
      return
    case 'dead':
      watch.same(id, `the dead job ${id}`, [view.state, view.error], ['dead_letter', outcome.error])
      return
    case 'retry':
      judgeBack(watch, view, {
        attempt: lease.attempt,
        runAtMs: watch.clock.nowMs() + outcome.delayMs,
        error: outcome.error,
      })
      return
    case 'release': {
      const nowMs = watch.clock.nowMs()
      // It keeps its place, and was due: it is now, wherever the clock was set meanwhile.
      const runAtMs = outcome.delayMs === 0 ? Math.min(lease.job.runAtMs, nowMs) : nowMs + outcome.delayMs
      judgeBack(watch, view, { attempt: lease.attempt - 1, runAtMs })
      return
    }
    default:
      outcome satisfies never
  }
}

/** It waits again; or a claim that waited has taken it at once. */
function judgeBack(
  watch: Watch,
  view: JobView,
  promised: Pick<JobView, 'attempt' | 'runAtMs'> & Partial<JobView>,
): void {
  const { id, state } = view
  const isTaken = state === 'in_progress'
  watch.expect(isTaken || state === 'queued', id, () => `${id} was given back and is ${state}`)
  watch.same(id, `the starts of ${id}, which was given back`, view.attempt - (isTaken ? 1 : 0), promised.attempt)
  watch.same(id, `when ${id}, which was given back, is due`, view.runAtMs, promised.runAtMs)
  if (promised.error !== undefined) watch.same(id, `the error of ${id}`, view.error, promised.error)
}

interface Removing {
  readonly settlements: readonly Settlement[]
  readonly refused: readonly NotApplied[]
  readonly before: Jobs
  readonly after: Jobs
}

/** What a job's own option, or that of its type, gives up is removed, and nothing else. */
function judgeRemoved(watch: Watch, { settlements, refused, before, after }: Removing): void {
  const applied = settlements.filter(({ lease }) => !refused.some((each) => each.lease.token === lease.token))
  const finished = new Map(before)
  for (const { lease, outcome } of applied) {
    const state = finishedState(outcome)
    const view = finished.get(lease.job.id)
    if (state === null || view === undefined || after.get(view.id)?.state === 'superseded') continue
    finished.set(view.id, { ...view, state })
  }
  const givenUpOf = (jobs: Jobs, surely: boolean): ReadonlySet<string> =>
    new Set(applied.flatMap((settlement) => givenUpBy(watch, settlement, { jobs, surely })))
  const [mayGo, mustGo] = [givenUpOf(finished, false), givenUpOf(after, true)]
  for (const id of before.keys()) {
    if (after.has(id)) continue
    watch.expect(mayGo.has(id), id, () => `${id} was removed by a settle that does not give it up`)
  }
  for (const [id, view] of after) {
    // One that a removed job came after may stay until the next settle.
    if (!mustGo.has(id) || isAwaited(view, after) || isAwaited(view, before)) continue
    watch.expect(false, id, () => `${id} is not to be kept after a settle, and stays`)
  }
}

type FinishedState = 'completed' | 'dead_letter'

function finishedState({ kind }: Settlement['outcome']): FinishedState | null {
  if (kind === 'complete') return 'completed'
  return kind === 'dead' ? 'dead_letter' : null
}

/**
 * The newest are those that arrived last: the place among its like tells how many are newer. A version of a latest key may
 * have taken the place of the one that it replaced, so that each may stand elsewhere.
 */
function givenUpBy(
  watch: Watch,
  { lease, outcome }: Settlement,
  { jobs, surely }: { readonly jobs: Jobs; readonly surely: boolean },
): readonly string[] {
  if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep === undefined) return []
  const { keep } = outcome
  const state = finishedState(outcome)
  const { id: own, type } = lease.job
  if (keep === 0) return jobs.get(own)?.state === state ? [own] : []
  const like = [...watch.arrivals].reverse().flatMap((id) => {
    const view = jobs.get(id)
    return view?.type === type && view.state === state ? [view] : []
  })
  const versions = like.filter(({ latestKey }) => latestKey !== null).length
  return like.flatMap(({ id, options, latestKey }, index) => {
    const slack = latestKey === null ? versions : like.length
    const newer = surely ? index - slack : index + slack
    const number = state === 'completed' ? options?.keepCompleted : options?.keepDead
    return newer >= keep && isBeyondKeepLimit(number, newer, outcome) ? [id] : []
  })
}

const isAwaited = ({ id }: JobView, jobs: Jobs): boolean =>
  [...jobs.values()].some(({ after, state }) => after?.ids.includes(id) === true && state !== 'completed')
