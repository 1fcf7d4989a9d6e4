import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'

const files = tempFiles()

/** Rows in blocks, as another program may write them: of two types, many due at the same time, in every state. */
const FILL = `
INSERT INTO job_queue (id, type, status, priority, scheduled_at, payload, created_at, updated_at, latest_key, waiting_for, ended)
WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :count)
SELECT printf('%s-%06d', :prefix, n), iif(n % 3 = 0, 'one', 'two'),
  CASE n % 7 WHEN 0 THEN 'in_progress' WHEN 1 THEN 'completed' WHEN 2 THEN 'dead_letter' WHEN 3 THEN 'failed' ELSE 'queued' END,
  1 + n % 2, iif(n % 5 = 0, :later, iif(n % 11 = 0, printf('2020-01-01T00:00:%06.3fZ', n / 1000.0), :now)), '{}', :now, :now,
  iif(n % 13 = 0, 'key-' || (n % 2), NULL), iif(n % 13 = 0, 1, 0), iif(n % 7 = 2 AND n % 17 = 0, 'cancelled', NULL)
FROM numbers`

const EXPECTED = `
SELECT type, sum(status = 'queued' AND scheduled_at <= :now) AS ready, sum(status = 'queued' AND scheduled_at > :now) AS delayed,
  sum(status = 'in_progress') AS inProgress, sum(status = 'completed') AS completed,
  sum(status = 'dead_letter' AND ended IS NULL) AS dead
FROM job_queue GROUP BY type`

test('many jobs are counted as few are, at one moment, and the event loop turns meanwhile', async () => {
  const file = files.next()
  const engine = await openEngine(`sqlite:${file}`, { clock: systemClock, migrate: true })
  const other = new DatabaseSync(file)
  const nowMs = systemClock.nowMs()
  const times = { now: toIso(nowMs), later: toIso(nowMs + 3_600_000) }
  const expected = () => {
    const rows = other.prepare(EXPECTED).all({ now: toIso(systemClock.nowMs()) }) as { type: string }[]
    return Object.fromEntries(rows.map(({ type, ...counts }) => [type, { ...counts }]))
  }
  other.prepare(FILL).run({ prefix: 'a', count: 20_000, ...times })
  assert.deepEqual(await engine.counts(), expected(), 'counted at once')
  other.prepare(FILL).run({ prefix: 'b', count: 60_000, ...times })
  const before = expected()
  let turns = 0
  const turn = (): void => {
    turns += 1
    immediate = setImmediate(turn)
  }
  let immediate = setImmediate(turn)
  const counting = engine.counts()
  while (turns < 2) await new Promise((resolve) => setImmediate(resolve))
  other.exec(`UPDATE job_queue SET status = 'completed' WHERE status = 'in_progress'`)
  assert.deepEqual(await counting, before, 'counted in slices')
  clearImmediate(immediate)
  assert.ok(turns > 2, `${turns} turns`)
  other.close()
  await engine.close()
})
