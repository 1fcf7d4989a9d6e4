/** The ways to look at a store must agree with each other, at any moment. */
import type { Engine, Inspector, TypeCounts } from '../../../src/engine/engine.ts'
import type { JobView } from '../../../src/job/job.ts'
import { JOB_STATES } from '../../../src/job/states.ts'
import { isClaimable } from './claims.ts'
import { allJobs, type Watch } from './watch.ts'

export async function lookAround(engine: Engine, watch: Watch): Promise<void> {
  const { inspector } = engine
  if (inspector === undefined) return
  // The first call after the clock was set lets waiting claims look again, and they may take something.
  await engine.counts()
  const jobs = await allJobs(engine)
  await judgeLists(inspector, watch, jobs)
  judgeCounts(watch, jobs, await engine.counts())
  await judgeOldest(inspector, watch, jobs)
  await judgeLetters(engine, watch, jobs)
  await judgeSteps(engine, watch)
}

async function judgeLists(inspector: Inspector, watch: Watch, jobs: readonly JobView[]): Promise<void> {
  const ids = (views: readonly (JobView | null)[]): readonly (string | undefined)[] => views.map((view) => view?.id)
  for (const state of JOB_STATES) {
    const listed = await inspector.list({ state, limit: 1_000 })
    watch.same(null, `the list of ${state} jobs`, ids(listed), ids(jobs.filter((view) => view.state === state)))
  }
  const pages: JobView[] = []
  for (let before: string | undefined; pages.length <= jobs.length; before = pages.at(-1)?.id) {
    const page = await inspector.list({ limit: 3, ...(before !== undefined && { before }) })
    pages.push(...page)
    if (page.length === 0) break
  }
  watch.same(null, 'the list of jobs, page by page', ids(pages), ids(jobs))
  // By their ids, which their clients made, or by when the store took them. A version that took the place of an older one
  // may stand there, and clocks that are set leave no order.
  const placed = jobs.filter(({ latestKey }) => latestKey === null)
  const isFalling = (of: (view: JobView) => string | number): boolean =>
    placed.every((view, index) => of(placed[index - 1] ?? view) >= of(view))
  const isOrdered = isFalling(({ id }) => id) || isFalling(({ createdAtMs }) => createdAtMs)
  const wasSet = watch.setMs >= 0
  watch.expect(isOrdered || wasSet, null, () => `jobs are not listed newest first: ${ids(placed).join(', ')}`)
}

const NONE: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }

function judgeCounts(watch: Watch, jobs: readonly JobView[], counts: Readonly<Record<string, TypeCounts>>): void {
  const nowMs = watch.clock.nowMs()
  for (const type of new Set([...jobs.map((view) => view.type), ...Object.keys(counts)])) {
    const of = jobs.filter((view) => view.type === type)
    const count = (state: JobView['state']): number => of.filter((view) => view.state === state).length
    const { ready, delayed, inProgress, completed, dead } = counts[type] ?? NONE
    const found = { queued: ready + delayed, inProgress, completed, dead }
    const states = { inProgress: count('in_progress'), completed: count('completed'), dead: count('dead_letter') }
    watch.same(null, `the counts of '${type}'`, found, { queued: count('queued'), ...states })
    const later = of.filter(({ state, runAtMs }) => state === 'queued' && runAtMs > nowMs).length
    const due = of.filter((view) => isClaimable(view, nowMs)).length
    watch.expect(
      delayed >= later && ready >= due,
      null,
      () => `'${type}' has ${later} jobs due later, and counts ${delayed}`,
    )
  }
}

async function judgeOldest(inspector: Inspector, watch: Watch, jobs: readonly JobView[]): Promise<void> {
  const due = jobs.filter(({ state, runAtMs }) => state === 'queued' && runAtMs <= watch.clock.nowMs())
  const oldest = await inspector.oldestDue()
  const firstMs = due.length === 0 ? null : Math.min(...due.map(({ runAtMs }) => runAtMs))
  watch.same(oldest?.id ?? null, 'the job that is due longest', oldest?.runAtMs ?? null, firstMs)
}

async function judgeLetters({ deadLetters }: Engine, watch: Watch, jobs: readonly JobView[]): Promise<void> {
  if (deadLetters === undefined) return
  const dead = jobs.filter(({ state }) => state === 'dead_letter')
  const all = (await deadLetters.list({ limit: 1_000 })).map(({ job }) => job)
  const ids = (views: readonly JobView[]): readonly string[] => views.map(({ id }) => id)
  watch.same(null, 'the list of dead letters', ids(all).toSorted(), ids(dead).toSorted())
  const pages: JobView[] = []
  while (pages.length < all.length) {
    const last = pages.at(-1)
    const after = last && { completedAtMs: last.completedAtMs ?? 0, id: last.id }
    const [next] = await deadLetters.list({ limit: 1, ...(after !== undefined && { after }) })
    if (next === undefined) break
    pages.push(next.job)
  }
  watch.same(null, 'the list of dead letters, page by page', ids(pages), ids(all))
  const middleMs = all[Math.floor(all.length / 2)]?.completedAtMs
  if (middleMs === undefined || middleMs === null) return
  const earlier = await deadLetters.list({ limit: 1_000, beforeMs: middleMs })
  const promised = all.filter(({ completedAtMs }) => (completedAtMs ?? 0) < middleMs)
  watch.same(null, 'the list of letters that died before', ids(earlier.map(({ job }) => job)), ids(promised))
}

/** A sweep that looks at one job after the other finds the same as one that looks at all. */
async function judgeSteps({ retention }: Engine, watch: Watch): Promise<void> {
  if (retention === undefined) return
  const beforeMs = watch.clock.nowMs() + 1
  const rules = (['completed', 'ended', 'dead'] as const).map((what) => ({ what, beforeMs }))
  const whole = await retention.sweep(rules, { from: null, max: 1_000, dryRun: true })
  let removed = 0
  let from: string | null = null
  do {
    const step = await retention.sweep(rules, { from, max: 2, dryRun: true })
    removed += step.removed
    from = step.next
  } while (from !== null)
  watch.same(null, 'what a sweep in small steps would remove', removed, whole.removed)
}

/** The history of each job tells its life, at the end of a simulation. */
export async function judgeHistories(engine: Engine, watch: Watch): Promise<void> {
  const { inspector } = engine
  if (inspector === undefined) return
  for (const { id, state } of await allJobs(engine)) {
    const lines = await inspector.history(id)
    watch.same(id, `the first line of the history of ${id}`, lines[0]?.name, 'enqueued')
    const last = lines.at(-1)?.name
    const promised = LAST_LINES[state]
    watch.expect(
      promised === undefined || (last !== undefined && promised.includes(last)),
      id,
      () => `the history of ${id}, which is ${state}, ends with '${last}'`,
    )
    for (const { name, detail } of lines) {
      const isTold = name !== 'failed' || typeof Object(detail?.error).message === 'string'
      watch.expect(isTold, id, () => `a failure in the history of ${id} has no error`)
    }
  }
}

/** A letter whose discard was undone has no line for that. */
const LAST_LINES: Partial<Record<JobView['state'], readonly string[]>> = {
  completed: ['completed'],
  dead_letter: ['dead', 'discarded'],
  cancelled: ['cancelled'],
  superseded: ['superseded'],
  discarded: ['discarded'],
}

/** Due jobs do not wait beside a claim that waits for them. */
export async function judgeWaiting(engine: Engine, watch: Watch): Promise<void> {
  const nowMs = watch.clock.nowMs()
  const waiting = [...watch.claims].filter(({ isOver }) => !isOver())
  if (waiting.length === 0 || watch.clock.monotonicMs() - watch.setMs < 1_000) return
  const queued = (await engine.inspector?.list({ state: 'queued', limit: 1_000 })) ?? []
  for (const view of queued) {
    if (!isClaimable(view, nowMs) || watch.limited.has(view.type)) continue
    const claim = waiting.find(({ types, perType }) => types.includes(view.type) && perType[view.type] !== 0)
    watch.expect(
      claim === undefined,
      view.id,
      () => `${view.id} is due, and a claim that waits for '${view.type}' is not given it`,
    )
  }
}
