import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { effectiveRank } from '../../job/ageing.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import { Connection } from './database.ts'
import type { Lane } from './lanes.ts'
import { applyMigrations } from './migrate.ts'
import { PEEK, PROBE, readReady } from './ready-jobs.ts'

const NOW_MS = Date.UTC(2026, 10, 17)
const TYPES = Array.from({ length: 12 }, (_, index) => `type-${index}`)

function stored(): Connection {
  const connection = new Connection(new DatabaseSync(':memory:'))
  applyMigrations(connection, NOW_MS)
  return connection
}

function laneOf(type: string, max: number): Lane {
  return { type: { type, leaseMs: 1_000 }, max, freeAtMs: null, tenants: null }
}

/** A generator of whole numbers below a bound: the same for the same seed. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

interface Row {
  readonly rowid: number
  readonly type: string
  readonly priority: number
  readonly scheduled_at: string
}

/** The same by sorting everything. */
function mostUrgent(rows: readonly Row[], lanes: readonly Lane[], max: number, ageingMs: number | null): number[] {
  const left = new Map(lanes.map((lane) => [lane.type.type, lane.max]))
  const rankOf = (row: Row): number => effectiveRank(row.priority, NOW_MS - fromIso(row.scheduled_at), ageingMs)
  const order = (one: Row, other: Row): number =>
    rankOf(one) - rankOf(other) || fromIso(one.scheduled_at) - fromIso(other.scheduled_at) || one.rowid - other.rowid
  const allowed = rows.toSorted(order).filter(({ type }) => {
    const count = left.get(type) ?? 0
    left.set(type, count - 1)
    return count > 0
  })
  return allowed.slice(0, max).map(({ rowid }) => rowid)
}

test('the most urgent jobs of many types are those that sorting all of them finds', (context) => {
  for (let seed = 1; seed <= 40; seed += 1) {
    context.diagnostic(`seed ${seed}`)
    const number = numbersFrom(seed)
    const connection = stored()
    const [types, priorities] = [1 + number(TYPES.length), 1 + number(4)]
    const insert =
      connection.prepare(`INSERT INTO job_queue (id, type, priority, scheduled_at, payload, created_at, updated_at)
      VALUES (?, ?, ?, ?, '{}', ?, ?)`)
    for (let index = 0; index < 200; index += 1) {
      // Many fall due at the same time, and some later.
      const due = toIso(NOW_MS + 1_000 * (1 + number(2)) - 1_000 * number(20))
      insert.run(`job-${index}`, TYPES[number(types)] ?? '', 1 + number(priorities), due, due, due)
    }
    const lanes = TYPES.slice(0, types - (types > 2 ? 1 : 0)).map((type) =>
      laneOf(type, number(3) === 0 ? number(5) : 200),
    )
    const known = new Set(lanes.map(({ type }) => type.type))
    const rows = connection
      .prepare(`SELECT rowid, type, priority, scheduled_at FROM job_queue WHERE scheduled_at <= ?`)
      .all(toIso(NOW_MS)) as Row[]
    const max = 1 + number(120)
    for (const ageingMs of [null, 3_000]) {
      const found = readReady(connection, lanes, { max, nowMs: NOW_MS, ageingMs }).map(({ rowid }) => rowid)
      const subscribed = rows.filter(({ type }) => known.has(type))
      assert.deepEqual(found, mostUrgent(subscribed, lanes, max, ageingMs), `seed ${seed}`)
    }
    connection.close()
  }
})

test('finding ready jobs seeks in one index and scans nothing', () => {
  const connection = stored()
  for (const statement of [PEEK, PROBE]) {
    const plan = connection.handle.prepare(`EXPLAIN QUERY PLAN ${statement}`).all() as { detail: string }[]
    const onJobs = plan.map(({ detail }) => detail).filter((detail) => detail.includes('job_queue'))
    assert.ok(onJobs.length > 0)
    for (const detail of onJobs) assert.match(detail, /^SEARCH job_queue USING (COVERING )?INDEX idx_job_queue_claim/)
    assert.ok(!plan.some(({ detail }) => detail.includes('TEMP B-TREE')), JSON.stringify(plan))
  }
  connection.close()
})
