import { backoffMs, backoffPresets } from '../../../job/backoff.ts'
import type { TableSettings } from './environment.ts'

type Figures = Pick<TableSettings, 'backoffBaseMs' | 'backoffMaxMs'>

/**
 * The wait before the next start: base × 2^(attempt − 1), never above the maximum (X178). `attempt` is the start that
 * just failed. A row that was started by code which does not count has 0, and waits like one after its first start.
 * `REQUEUE_DELAY` in statements.ts is the same in SQL, since the reaper asks and answers in one statement.
 */
export function requeueDelayMs(attempt: number, { backoffBaseMs, backoffMaxMs }: Figures): number {
  const backoff = backoffPresets.reaper(backoffBaseMs, backoffMaxMs)
  return backoffMs(backoff, Math.max(1, attempt), () => 0)
}
