import type { History } from '../history/entry.ts'
import type { Facts } from './check.ts'
import type { Evidence, JobStory, Tally } from './evidence.ts'
import { Reading } from './reading.ts'

export function gather({ history, final, capabilities }: Facts): Evidence {
  const reading = new Reading()
  for (const entry of history) reading.take(entry)
  reading.finish()
  const { jobs, claims, strays, records, sweeps, happenings, unknownCalls } = reading
  return {
    history,
    final,
    capabilities,
    jobs,
    claims,
    strays,
    records,
    sweeps,
    ...happenings.facts(),
    endMs: history.at(-1)?.atMs ?? 0,
    tally: { ...tallyOf(jobs), unknownCalls, faults: happenings.faultsByKind() },
  }
}

function tallyOf(jobs: ReadonlyMap<string, JobStory>): Omit<Tally, 'unknownCalls' | 'faults'> {
  const tally = { jobs: 0, starts: 0, completed: 0, dead: 0, repeats: 0, refusedSettles: 0 }
  for (const { ask, starts } of jobs.values()) {
    if (ask !== null) tally.jobs += 1
    tally.starts += starts.length
    tally.repeats += Math.max(0, starts.length - 1)
    const settles = starts.flatMap((start) => start.settles)
    if (settles.some(({ outcome, done }) => outcome.kind === 'complete' && done === 'yes')) tally.completed += 1
    if (settles.some(({ outcome, done }) => outcome.kind === 'dead' && done === 'yes')) tally.dead += 1
    tally.refusedSettles += settles.filter(({ done }) => done === 'no').length
  }
  return tally
}

/**
 * The ids of all jobs that a history names: what the final store is asked for.
 *
 * @example
 * const final = await readFinalStore(engine, idsOf(history))
 */
export function idsOf(history: History): readonly string[] {
  const ids = new Set<string>()
  for (const entry of history) {
    switch (entry.what) {
      case 'enqueue':
      case 'save':
        for (const { id } of entry.jobs) ids.add(id)
        break
      case 'claimed':
        for (const { id } of entry.leases) ids.add(id)
        break
      case 'foreign':
        if (entry.job.id !== '') ids.add(entry.job.id)
        break
      default:
    }
  }
  return [...ids]
}
