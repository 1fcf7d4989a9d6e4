import type { Rule } from '../check.ts'
import { acknowledged } from './acknowledged.ts'
import { attempts } from './attempts.ts'
import { carried } from './carried.ts'
import { concurrency } from './concurrency.ts'
import { counting } from './counting.ts'
import { dependencies } from './dependencies.ts'
import { desk } from './desk.ts'
import { due } from './due.ts'
import { fencing } from './fencing.ts'
import { idle } from './idle.ts'
import { keys } from './keys.ts'
import { latest } from './latest.ts'
import { leases } from './leases.ts'
import { limits } from './limits.ts'
import { order } from './order.ts'
import { orderByKey } from './order-by-key.ts'
import { pausing } from './pausing.ts'
import { progress } from './progress.ts'
import { recovery } from './recovery.ts'
import { refusals } from './refusals.ts'
import { removal } from './removal.ts'
import { schedules } from './schedules.ts'
import { secrecy } from './secrecy.ts'
import { seen } from './seen.ts'
import { slots } from './slots.ts'
import { stopping } from './stopping.ts'

/** All rules that a history is judged by. */
export const rules: readonly Rule[] = [
  acknowledged,
  counting,
  fencing,
  leases,
  attempts,
  recovery,
  idle,
  keys,
  stopping,
  desk,
  refusals,
  due,
  secrecy,
  order,
  orderByKey,
  latest,
  dependencies,
  limits,
  slots,
  concurrency,
  schedules,
  pausing,
  removal,
  progress,
  carried,
  seen,
]
