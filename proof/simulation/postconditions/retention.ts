import type { Engine } from '../../../src/engine/engine.ts'
import type { Retention, RetentionRule } from '../../../src/engine/retention.ts'
import type { JobView } from '../../../src/job/job.ts'
import { isEnded } from '../../../src/job/states.ts'
import { replaced } from '../../../src/testing/replaced.ts'
import { allJobs, answered, isLive, type Watch } from './watch.ts'

export function watchRetention(engine: Engine, retention: Retention, watch: Watch): Retention {
  const sweep: Retention['sweep'] = async (rules, step) => {
    const before = await allJobs(engine)
    const answer = await answered(watch, 'a sweep', () => retention.sweep(rules, step))
    const after = new Set((await allJobs(engine)).map(({ id }) => id))
    const gone = before.filter(({ id }) => !after.has(id))
    const givenUp = before.filter((view) => isGivenUp(view, rules, before))
    if (step.dryRun === true) watch.same(null, 'what a dry run removed', gone.length, 0)
    else watch.same(null, 'the number of swept jobs', answer.removed, gone.length)
    for (const { id } of gone) {
      watch.expect(
        givenUp.some((view) => view.id === id),
        id,
        () => `${id} was swept, and no rule gives it up`,
      )
    }
    if (answer.next === null && step.from === null && step.dryRun !== true) {
      for (const { id } of givenUp) {
        // A dead letter that comes after it may be replayed, and then reads its result.
        const isNeeded = before.some((other) => other.state === 'dead_letter' && other.after?.ids.includes(id) === true)
        watch.expect(!after.has(id) || isNeeded, id, () => `a sweep of all jobs left ${id}`)
      }
    }
    await judgeAudit(engine, watch, gone)
    return answer
  }
  return replaced(retention, new Map<PropertyKey, unknown>([['sweep', sweep]]))
}

/** Dead letters and discarded jobs do not go in silence. */
async function judgeAudit(engine: Engine, watch: Watch, gone: readonly JobView[]): Promise<void> {
  for (const { id, state } of gone) {
    if (state !== 'dead_letter' && state !== 'discarded') continue
    const entries = (await engine.deadLetters?.audit({ jobId: id, limit: 10 })) ?? []
    watch.expect(
      entries.some(({ action }) => action === 'purge'),
      id,
      () => `the ${state} ${id} was swept without an entry in the audit`,
    )
  }
}

/** The rule that names the type counts, and what an unfinished job comes after is kept. */
export function isGivenUp(view: JobView, rules: readonly RetentionRule[], jobs: readonly JobView[]): boolean {
  const what = whatOf(view)
  if (what === null || view.completedAtMs === null) return false
  const fitting = rules.filter((rule) => rule.what === what)
  const rule = fitting.find(({ type }) => type === view.type) ?? fitting.find(({ type }) => type === undefined)
  if (rule === undefined || rule.beforeMs === null || view.completedAtMs >= rule.beforeMs) return false
  return !jobs.some((other) => isLive(other) && other.after?.ids.includes(view.id) === true)
}

function whatOf({ state }: JobView): RetentionRule['what'] | null {
  if (isEnded(state)) return 'ended'
  if (state === 'completed') return 'completed'
  return state === 'dead_letter' ? 'dead' : null
}
