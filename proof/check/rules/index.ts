import type { Rule } from '../check.ts'
import { acknowledged } from './acknowledged.ts'
import { attempts } from './attempts.ts'
import { fencing } from './fencing.ts'
import { leases } from './leases.ts'
import { recovery } from './recovery.ts'
import { seen } from './seen.ts'

/** All rules that a history is judged by. */
export const rules: readonly Rule[] = [acknowledged, fencing, leases, attempts, recovery, seen]
