import type { StoreClock, StoreTime } from '../../engine/store-steps.ts'
import {
  FOLLOW_CLOCK,
  NAME_CLOCK,
  READ_CLOCK,
  SHIFT_DUE,
  SHIFT_LEADERS,
  SHIFT_LEASES,
  SHIFT_PRESENCE,
  SHIFT_STARTS,
} from './clock-statements.ts'
import type { Database } from './database.ts'

/** The server's clock, by which leases, limits, offices and presence are judged. */
export function serverClock(database: Database): Omit<StoreClock, 'onStep'> {
  return {
    async read(): Promise<StoreTime> {
      const [row] = await database.rows<{ now_ms: number; followed_ms: number }>(READ_CLOCK)
      return { nowMs: row?.now_ms ?? 0, followedMs: row?.followed_ms ?? 0 }
    },
    shift: (stepMs, followedMs) =>
      database.transaction(async (queries) => {
        await queries.rows(NAME_CLOCK)
        if ((await queries.rows(FOLLOW_CLOCK, stepMs, followedMs)).length === 0) return false
        await queries.rows(SHIFT_LEASES, stepMs)
        await queries.rows(SHIFT_STARTS, stepMs)
        await queries.rows(SHIFT_LEADERS, stepMs)
        await queries.rows(SHIFT_PRESENCE, stepMs)
        if (stepMs < 0) await queries.rows(SHIFT_DUE, stepMs)
        return true
      }),
  }
}
