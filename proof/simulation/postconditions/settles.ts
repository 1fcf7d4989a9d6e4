import type { Consumer } from '../../../src/engine/engine.ts'
import type { NotApplied, Settlement } from '../../../src/engine/outcome.ts'
import { isBeyondKeepLimit } from '../../../src/engine/retention.ts'
import type { JobView } from '../../../src/job/job.ts'
import type { Watched } from './claims.ts'
import { allJobs, answered, unchanged, type Watch } from './watch.ts'

export function watchSettle({ engine, consumer, watch }: Watched): Consumer['settle'] {
  return async (settlements) => {
    const before = byId(await allJobs(engine))
    const held = settlements.map(({ lease }) => watch.holds(lease.job.id, lease.token))
    const refused = await answered(watch, 'a settle', () => consumer.settle(settlements))
    const after = byId(await allJobs(engine))
    for (const [index, settlement] of settlements.entries()) {
      const isHeld = held[index] === true
      judgeSettlement(watch, settlement, { refused, isHeld, before, after })
      const { job, token } = settlement.lease
      if (isHeld && watch.leases.get(job.id)?.token === token) watch.leases.delete(job.id)
    }
    judgeRemoved(watch, { settlements, refused, before, after })
    return refused
  }
}

type Jobs = ReadonlyMap<string, JobView>

const byId = (jobs: readonly JobView[]): Jobs => new Map(jobs.map((view) => [view.id, view]))

interface Around {
  readonly refused: readonly NotApplied[]
  readonly isHeld: boolean
  readonly before: Jobs
  readonly after: Jobs
}

function judgeSettlement(watch: Watch, { lease, outcome }: Settlement, around: Around): void {
  const { refused, isHeld, before, after } = around
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
    if (view?.state === before.get(id)?.state)
      watch.same(id, `${id} after a refused settle`, unchanged(view), unchanged(before.get(id)))
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
      return judgeBack(watch, view, {
        attempt: lease.attempt,
        runAtMs: watch.clock.nowMs() + outcome.delayMs,
        error: outcome.error,
      })
    case 'release': {
      const nowMs = watch.clock.nowMs()
      // It keeps its place, and was due: it is now, wherever the clock was set meanwhile.
      const runAtMs = outcome.delayMs === 0 ? Math.min(lease.job.runAtMs, nowMs) : nowMs + outcome.delayMs
      return judgeBack(watch, view, { attempt: lease.attempt - 1, runAtMs })
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

/** Only what a job's own option, or that of its type, gives up is removed. */
function judgeRemoved(watch: Watch, { settlements, refused, before, after }: Removing): void {
  const applied = settlements.filter(({ lease }) => !refused.some((each) => each.lease.token === lease.token))
  for (const { lease, outcome } of applied) {
    if (outcome.kind !== 'complete' && outcome.kind !== 'dead') continue
    if (outcome.keep === undefined || after.get(lease.job.id)?.state === 'superseded') continue
    const { keep } = outcome
    const itself = after.get(lease.job.id)
    if (keep === 0) {
      const isGone = itself === undefined || isAwaited(itself, after)
      watch.expect(isGone, lease.job.id, () => `${lease.job.id} finished, is not to be kept, and stays`)
    }
  }
  for (const [id, view] of before) {
    if (after.has(id)) continue
    const settled = applied.find(({ lease }) => lease.job.id === id)
    const isGivenUp =
      settled !== undefined || applied.some(({ lease, outcome }) => givesUp(outcome, lease.job.type, view, after))
    watch.expect(isGivenUp, id, () => `${id} (${view.state}) was removed by a settle that does not give it up`)
  }
}

function isNewer(a: JobView, b: JobView): boolean {
  return a.createdAtMs > b.createdAtMs && (a.completedAtMs ?? 0) > (b.completedAtMs ?? 0)
}

function keptBy({ options }: JobView, state: 'completed' | 'dead_letter'): unknown {
  return state === 'completed' ? options?.keepCompleted : options?.keepDead
}

function givesUp(outcome: Settlement['outcome'], type: string, view: JobView, after: Jobs): boolean {
  if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep === undefined || outcome.keep === 0)
    return false
  const state = outcome.kind === 'complete' ? 'completed' : 'dead_letter'
  if (view.type !== type || view.state !== state) return false
  const newer = [...after.values()].filter(
    (each) => each.type === type && each.state === state && !isNewer(view, each),
  ).length
  // The one that was settled may itself have gone, and counts.
  return newer + 1 >= outcome.keep && isBeyondKeepLimit(keptBy(view, state), newer + 1, outcome)
}

const isAwaited = ({ id }: JobView, jobs: Jobs): boolean =>
  [...jobs.values()].some(({ after, state }) => after?.ids.includes(id) === true && state !== 'completed')
