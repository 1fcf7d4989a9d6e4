import { claiming } from './claiming.ts'
import { counting } from './counting.ts'
import { desk } from './desk.ts'
import type { FalseHistory } from './false-history.ts'
import { keeping } from './keeping.ts'
import { leasing } from './leasing.ts'
import { log } from './log.ts'
import { losing } from './losing.ts'
import { removing } from './removing.ts'
import { scheduling } from './scheduling.ts'
import { timing } from './timing.ts'

/** Each breaks one rule, and differs from a sound history in nothing else. */
export const falseHistories: readonly FalseHistory[] = [
  ...losing,
  ...counting,
  ...leasing,
  ...timing,
  ...claiming,
  ...keeping,
  ...desk,
  ...removing,
  ...scheduling,
  ...log,
]
