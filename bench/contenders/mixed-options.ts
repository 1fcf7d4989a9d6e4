/** A job of the mixture in the words of BullMQ: whatever has a priority comes after what has none. */
import type { JobsOptions } from 'bullmq'
import type { MixedJob } from '../mixture.ts'

const PRIORITIES = { first: 1, usual: 5, last: 9 } as const
const RETRIES = { attempts: 3, backoff: { type: 'fixed', delay: 1_000 } } as const

export function mixedOptions({ urgency, delayMs }: MixedJob): JobsOptions {
  return { ...RETRIES, priority: PRIORITIES[urgency], ...(delayMs === 0 ? {} : { delay: delayMs }) }
}
