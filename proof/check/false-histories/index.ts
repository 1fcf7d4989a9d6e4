import type { Excused } from './false-history.ts'
import { keeping } from './keeping.ts'
import { leasing } from './leasing.ts'
import { log } from './log.ts'
import { losing } from './losing.ts'
import { timing } from './timing.ts'

/** Each breaks one rule, and differs from a sound history in nothing else. */
export const falseHistories: readonly Excused[] = [...losing, ...leasing, ...timing, ...keeping, ...log]
