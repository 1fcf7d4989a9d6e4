import type { Mill } from '../../../src/index.ts'
import type { Bar } from '../progress.ts'

/** What a part of the demonstration has found: lines for the table of figures, and claims with whether they hold. */
export interface Outcome {
  readonly figures: readonly (readonly [name: string, value: string])[]
  readonly checks: readonly (readonly [holds: boolean, claim: string])[]
}

/** Waits for jobs to finish, well or not, and fills the bar. */
export async function counted(mill: Mill, ids: readonly string[], bar: Bar, signal: AbortSignal): Promise<void> {
  let done = 0
  const finished = async (id: string): Promise<void> => {
    await mill.result(id, { timeout: '5m', signal }).catch(() => undefined)
    done += 1
    bar.at(done)
  }
  await Promise.all(ids.map(finished))
}

/** The value below which this share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}
