import type { History } from '../history/entry.ts'
import type { Facts } from './check.ts'
import type { Evidence } from './evidence.ts'
import { Reading } from './reading.ts'

export function gather({ history, final, capabilities }: Facts): Evidence {
  const reading = new Reading()
  for (const entry of history) reading.take(entry)
  reading.finish()
  const { jobs, claims, records, sweeps, happenings } = reading
  return {
    history,
    final,
    capabilities,
    jobs,
    claims,
    records,
    sweeps,
    ...happenings.facts(),
    endMs: history.at(-1)?.atMs ?? 0,
    tally: { ...reading.tally(), faults: happenings.faultsByKind() },
  }
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
