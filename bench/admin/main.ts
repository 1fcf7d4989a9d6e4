/**
 * How quickly the admin API answers when a store is large: npm run bench:admin [-- --jobs N --rounds N --sqlite <file> --postgres <url>]
 *
 * Real requests over loopback against a server that also samples, on SQLite and on Postgres. A first round of each request
 * is left out: it opens connections and fills caches. A store that is given is filled if it is empty, and kept, so that
 * the next run measures at once; ids and times of its jobs follow from its first job.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createAdmin } from '../../src/http/index.ts'
import { open } from '../../src/index.ts'
import { machineFacts } from '../machine.ts'
import { percentile } from '../statistics.ts'
import { type Filling, filledId } from './fill.ts'
import { type LargeStore, largeStores, readSizes } from './stores.ts'

const P95_MS_MAX = 50
/** A search may look for 80 ms before it answers, and causes are counted over all dead letters. */
const SEARCH_P95_MS_MAX = 200
/** Requests that find nothing, or nothing within the time of one page. All others must find something, or they measure nothing. */
const FINDS_NOTHING = /nothing|host 9|payload\.n:|tag:all tag|state=in_progress|schedules|audit/

const sizes = readSizes(50)
const { jobs, rounds } = sizes

/** Each has a part that an index serves. */
const searchesOf = (filled: Filling): readonly string[] => [
  `id:${filledId(123_456, filled)}`,
  'host 3',
  'type:type-3',
  'type:type-3 state:completed',
  'state:dead error:"host 3"',
  'key:order-7',
  'key:order-999957',
  'tenant:rare',
  'tenant:acme payload.n:17',
  'tag:import-7',
  'tag:all tag:import-7',
  'tag:all payload.n:nothing',
  'since:3h until:2h',
  'since:3h error:"host 3"',
  'type:type-15 error:"host 3" since:12h',
  'type:type-3 payload.n:nothing',
  'error:"host 9"',
  'until:20h payload.n:1003',
]

const LETTER_SEARCHES: readonly string[] = ['error:"host 3" since:1d', 'tag:nothing', 'type:type-15 payload.n:nothing']

const requestsOf = (filled: Filling): readonly string[] => [
  ...searchesOf(filled).map((search) => `jobs?search=${encodeURIComponent(search)}`),
  ...LETTER_SEARCHES.map((search) => `dead-letters?search=${encodeURIComponent(search)}`),
  'overview',
  'history',
  'queues',
  'workers',
  'alerts',
  'schedules',
  'jobs',
  'jobs?state=queued',
  'jobs?state=in_progress',
  'jobs?state=completed',
  'jobs?state=dead_letter',
  'jobs?type=type-3',
  'jobs?type=type-3&state=queued',
  'jobs?type=type-3&state=completed&limit=500',
  `jobs/${filledId(123_456, filled)}`,
  `jobs/${filledId(90, filled)}/explain`,
  'dead-letters',
  'dead-letters?type=type-15',
  'dead-letters/groups',
  `dead-letters/${filledId(95, filled)}`,
  'audit',
]

interface Row {
  readonly engine: string
  readonly request: string
  readonly p50Ms: number
  readonly p95Ms: number
}

async function measure({ engine, url, filled }: LargeStore): Promise<readonly Row[]> {
  const mill = await open(url)
  const admin = createAdmin(mill)
  const server = await admin.listen({ port: 0 })
  const took = new Map<string, number[]>(requestsOf(filled).map((request) => [request, []]))
  try {
    for (let round = 0; round <= rounds; round += 1) {
      for (const [request, times] of took) {
        const startedMs = performance.now()
        const answer = await fetch(`${server.url}/api/v1/${request}`)
        const text = await answer.text()
        if (!answer.ok) throw new Error(`${engine}: ${request} answered ${answer.status}: ${text}`)
        if (round > 0) times.push(performance.now() - startedMs)
        if (/"items":\[\]/.test(text) && !FINDS_NOTHING.test(decodeURIComponent(request)))
          throw new Error(`${engine}: ${request} found nothing`)
      }
    }
  } finally {
    await server.close()
    await mill.close()
  }
  const every: Row = { engine, request: 'all of them', ...bands([...took.values()].flat()) }
  return [...[...took].map(([request, times]) => ({ engine, request, ...bands(times) })), every]
}

function bands(times: readonly number[]): Pick<Row, 'p50Ms' | 'p95Ms'> {
  const tenths = (ms: number): number => Math.round(ms * 10) / 10
  return { p50Ms: tenths(percentile(times, 50)), p95Ms: tenths(percentile(times, 95)) }
}

const machine = machineFacts({})
const rows: Row[] = []
for await (const store of largeStores(sizes)) rows.push(...(await measure(store)))
console.table(rows)
mkdirSync('bench/results/admin', { recursive: true })
writeFileSync('bench/results/admin/api.json', `${JSON.stringify({ jobs, rounds, machine, rows }, null, 2)}\n`)
const limitOf = ({ request }: Row): number =>
  /\?search=|groups|all of them/.test(request) ? SEARCH_P95_MS_MAX : P95_MS_MAX
const worst = rows.filter((row) => row.p95Ms > limitOf(row))
for (const row of worst) console.log(`above ${limitOf(row)} ms: ${row.engine} ${row.request}: ${row.p95Ms} ms`)
process.exit(worst.length === 0 ? 0 : 1)
