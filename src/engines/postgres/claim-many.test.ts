import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dropSchema, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { seededRandom } from '../../testing/open-for-test.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

interface Stored {
  readonly id: string
  readonly type: string
  readonly priority: number
  readonly dueInMs: number
}

const TYPES = Array.from({ length: 12 }, (_, index) => `type-${index}`)

/** In the order in which they are claimed. Jobs with one due time are stored in the order of their ids. */
const byUrgency = (one: Stored, other: Stored): number =>
  one.priority - other.priority || one.dueInMs - other.dueInMs || (one.id < other.id ? -1 : 1)

/** Jobs that came in turns, and jobs of one type that came together, with some for later. */
function jobsOf(random: () => number, inTurns: boolean, priorities: number): Stored[] {
  return Array.from({ length: 600 }, (_, index): Stored => {
    const at = inTurns ? Math.floor(random() * TYPES.length) : Math.floor((index / 600) * TYPES.length)
    const dueInMs = random() < 0.1 ? 3_600_000 : -600_000 + Math.floor(index / (1 + random() * 30)) * 10
    const priority = 1 + Math.floor(random() * priorities)
    return { id: `job-${String(index).padStart(5, '0')}`, type: TYPES[at] ?? '', priority, dueInMs }
  })
}

test('a claim of many types takes the most urgent jobs of all, and of no type more than its bound', async (t) => {
  const seed = Math.floor(Math.random() * 1e9)
  t.diagnostic(`seed ${seed}`)
  const random = seededRandom(seed)
  const server = await postgresServer()
  for (const [inTurns, priorities] of [
    [true, 1],
    [false, 1],
    [true, 10],
    [false, 3],
  ] as const) {
    const { url, schema } = schemaUrl(server)
    await migrate(url, { clock: systemClock, migrate: true })
    let left = jobsOf(random, inTurns, priorities)
    await query(
      server.url,
      `INSERT INTO ${schema}.jobs (id, type, priority, run_at, payload)
       SELECT job ->> 'id', job ->> 'type', (job ->> 'priority')::int,
         date_trunc('second', now()) + (job ->> 'dueInMs')::float8 * interval '1 ms', '{}'
       FROM json_array_elements($1::json) WITH ORDINALITY AS given (job, nth) ORDER BY nth`,
      [JSON.stringify(left)],
    )
    const engine = await openEngine(url, { clock: systemClock, migrate: false })
    const types = TYPES.map((type) => ({ type, leaseMs: 60_000 }))
    const consumer = await engine.consume({ types, worker: 'w' })
    while (left.some(({ dueInMs }) => dueInMs < 0)) {
      const max = 1 + Math.floor(random() ** 2 * 200)
      const perType = Object.fromEntries(TYPES.map((type) => [type, random() < 0.5 ? max : Math.floor(random() * 20)]))
      const claimed = await consumer.claim({ max, perType, waitMs: 0, signal: new AbortController().signal })
      const taken = new Map<string, number>()
      const expected = left
        .filter(({ dueInMs }) => dueInMs < 0)
        .sort(byUrgency)
        .filter(({ type }) => {
          taken.set(type, (taken.get(type) ?? 0) + 1)
          return (taken.get(type) ?? 0) <= (perType[type] ?? max)
        })
        .slice(0, max)
        .map(({ id }) => id)
      assert.deepEqual(
        claimed.map(({ job }) => job.id),
        expected,
        `of at most ${max}, ${inTurns ? 'in turns' : 'together'}, seed ${seed}`,
      )
      left = left.filter(({ id }) => !expected.includes(id))
    }
    await engine.close()
    await dropSchema(url, schema)
  }
})
