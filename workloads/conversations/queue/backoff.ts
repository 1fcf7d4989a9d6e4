import { type Backoff, backoffMs } from '../../../src/job/backoff.ts'

/** 2 s, 4 s, 8 s … 60 s, each with up to a second more. */
export const BACKOFF: Backoff = {
  kind: 'exponential',
  base: '1s',
  max: '60s',
  firstExponent: 1,
  jitter: { add: '1s' },
}

/** min(1000 × 2^attempts, 60000) ms, plus up to a second. */
export function calculateBackoff(attempts: number, random: () => number = Math.random): number {
  return backoffMs(BACKOFF, attempts, random)
}
