import { DEAD_LETTER_CASES } from './dead-letters.ts'
import { JOB_CASES } from './jobs.ts'
import { OPERATING_CASES } from './operating.ts'
import { SCHEDULE_CASES } from './schedules.ts'
import { TYPE_CASES } from './types.ts'

/** Every route but those for topics. */
export const CASES = { ...OPERATING_CASES, ...TYPE_CASES, ...SCHEDULE_CASES, ...JOB_CASES, ...DEAD_LETTER_CASES }
