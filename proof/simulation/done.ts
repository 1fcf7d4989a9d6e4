import type { Engine } from '../../src/engine/engine.ts'
import type { JobView } from '../../src/job/job.ts'

const ALL = 1_000

/** Whether every job has finished, but for those that wait for the replay of a dead letter. */
export async function isAllDone({ inspector }: Engine): Promise<boolean> {
  if (inspector === undefined) return true
  if ((await inspector.list({ state: 'in_progress', limit: ALL })).length > 0) return false
  const queued = await inspector.list({ state: 'queued', limit: ALL })
  const stuck = new Set<string>()
  // Oldest first: a job comes after those that it waits for.
  for (const job of queued.toReversed()) {
    const before = await inspector.find(job.after?.ids ?? [])
    if (!before.some((view) => view !== null && holdsBack(view, job, stuck))) return false
    stuck.add(job.id)
  }
  return true
}

function holdsBack(before: JobView, { after }: JobView, stuck: ReadonlySet<string>): boolean {
  return stuck.has(before.id) || (before.state === 'dead_letter' && after?.ifDead === 'wait')
}
