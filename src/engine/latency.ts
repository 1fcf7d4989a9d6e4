import type { Clock } from '../time/clock.ts'
import type { Finding } from './diagnosis.ts'
import { ok, warning } from './findings.ts'

const PINGS = 7
const SLOW_MS = 25

/** How long a few round trips took, one after the other. */
export async function measureLatency(clock: Clock, ping: () => Promise<unknown>): Promise<readonly number[]> {
  const took: number[] = []
  for (let index = 0; index < PINGS; index += 1) {
    const fromMs = clock.monotonicMs()
    await ping()
    took.push(clock.monotonicMs() - fromMs)
  }
  return took
}

/** By the median, so that one slow answer is no finding. `cost`: what waits for a round trip. */
export function judgeLatency(
  tookMs: readonly number[],
  { cost, advice }: { readonly cost: string; readonly advice: string },
): Finding {
  const sorted = tookMs.toSorted((left, right) => left - right)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const text = `a round trip takes ${median.toFixed(1)} ms (${(sorted.at(-1) ?? 0).toFixed(1)} ms at most of ${sorted.length})`
  return median < SLOW_MS ? ok('latency', text) : warning('latency', `${text}: ${cost}`, advice)
}
