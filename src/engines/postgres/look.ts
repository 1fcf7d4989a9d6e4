import type { ClaimRequest, SubscribedType } from '../../engine/engine.ts'
import { CLOCK_COLUMNS, type ClockRow } from './clock.ts'
import type { PostgresCore } from './core.ts'
import type { Cursors } from './cursors.ts'
import { CLAIMABLE, DUE, ms } from './fragments.ts'
import type { Names } from './names.ts'

/**
 * All that a process without work asks again and again, in one statement: when the next job of these types falls due (null
 * when none waits), the server's time, the version of the schema, and which types are paused.
 */
export const LOOK = (names: Names): string => `
SELECT ${CLOCK_COLUMNS(names)}, (SELECT coalesce(max(version), 0) FROM ${names.versions}) AS needed,
  (SELECT md5(string_agg(name || ' ' || revision, ' ' ORDER BY name)) FROM ${names.records} WHERE kind = 'pause') AS pauses,
  (SELECT ${ms('min(found.due)')} FROM unnest((SELECT $2::text[]), (SELECT $3::int[]), (SELECT $4::timestamptz[])) AS lane (type, at_priority, since)
    CROSS JOIN generate_series(1, 10) AS rank (priority) CROSS JOIN LATERAL (
      SELECT ${DUE} AS due FROM ${names.jobs} WHERE type = lane.type AND priority = rank.priority AND ${CLAIMABLE}
        AND ${DUE} >= CASE WHEN rank.priority = lane.at_priority THEN lane.since ELSE '-infinity' END
      ORDER BY ${DUE}, arrival LIMIT 1) AS found) AS next_ms`

interface LookRow extends ClockRow, NextRow {
  readonly needed: number
  readonly pauses: string | null
}

/** How long until the next job of these types falls due: 0 when one is due already, null when none waits. */
export async function nextDueInMs(
  core: PostgresCore,
  types: readonly SubscribedType[],
  perType: ClaimRequest['perType'],
  cursors: Cursors,
): Promise<number | null> {
  const open = types.map((type) => type.type).filter((type) => (perType?.[type] ?? 1) > 0)
  if (open.length === 0) return null
  const starts = open.map((type) => cursors.of(type))
  const askedAtMs = core.clock.monotonicMs()
  const [row] = await core.database.rows<LookRow>(
    LOOK,
    open,
    starts.map((start) => start?.priority ?? 0),
    starts.map((start) => start?.since ?? '-infinity'),
  )
  if (row === undefined) return null
  core.schema.saw(row)
  core.pauses.saw(row.pauses)
  const isInTime = await core.steps.heard({ nowMs: row.now_ms, followedMs: row.followed_ms }, askedAtMs)
  return isInTime ? leftMs([row]) : 0
}

export interface NextRow {
  readonly next_ms: number | null
  readonly now_ms: number
}

export function leftMs([row]: readonly NextRow[]): number | null {
  if (row === undefined || row.next_ms === null) return null
  return Math.max(0, row.next_ms - row.now_ms)
}
