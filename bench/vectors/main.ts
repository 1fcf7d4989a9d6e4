/**
 * How quickly neighbours are found, and how busy a batch worker keeps its embedder:
 * npm run bench:vectors [-- --count N --searches N --enforce]
 * Each call is a run; the page shows the last three.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { applyMigrations } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { PGVECTOR_MISSING, startPgvector } from '../../test/servers/pgvector.ts'
import { openVectorStore, type SqlVectorStore } from '../../workloads/embeddings/index.ts'
import { machineFacts } from '../machine.ts'
import { DOCS_DIR, RESULTS_DIR, writeDocs } from '../report/files.ts'
import { readIfThere } from '../report/published.ts'
import { VECTOR_RESULTS, type VectorFigure, type VectorResult } from '../report/vectors.ts'
import { withRun } from '../report/workload-figures.ts'
import { percentile } from '../statistics.ts'
import { busyShare } from './busy.ts'
import { DIMENSIONS, entriesOf, queriesOf } from './data.ts'

const NAMESPACE = 'bench'
const PAGE = 500
const SQLITE_P95_MS = 200
const POSTGRES_P95_MS = 20
const BUSY_SHARE = 0.9
/** So that vectors and index stay in memory, as a server that searches them should be set up. */
const POSTGRES_SETTINGS = ['shared_buffers=1GB', 'maintenance_work_mem=1GB']

interface Measured {
  readonly what: string
  readonly value: number
  readonly unit: VectorFigure['unit']
  readonly target?: number
}

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000

async function fill(store: SqlVectorStore, count: number): Promise<void> {
  for (let start = 0; start < count; start += PAGE) {
    await store.upsert(NAMESPACE, entriesOf(start, Math.min(PAGE, count - start)), { model: 'bench' })
  }
}

async function timed<Answer>(act: () => Promise<Answer>): Promise<{ readonly ms: number; readonly answer: Answer }> {
  const startedMs = systemClock.monotonicMs()
  const answer = await act()
  return { ms: systemClock.monotonicMs() - startedMs, answer }
}

async function searches(store: SqlVectorStore, count: number, filter = {}) {
  const [times, found]: [number[], string[][]] = [[], []]
  for (const vector of queriesOf(count)) {
    const { ms, answer } = await timed(() => store.search(NAMESPACE, vector, { limit: 10, filter }))
    times.push(ms)
    found.push(answer.map(({ id }) => id))
  }
  return { times, found }
}

/** Also returns the true neighbours, for the recall of the index. */
async function onSqlite(url: string, searchCount: number) {
  const store = await openVectorStore(url)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const first = await timed(() => store.search(NAMESPACE, queriesOf(1)[0] ?? []))
  delay.enable()
  const { times, found } = await searches(store, searchCount)
  delay.disable()
  const filtered = await searches(store, Math.ceil(searchCount / 4), { group: 7 })
  await store.close()
  const without: Measured[] = []
  for (const [way, extension] of [
    ['sqlite-vec', true],
    ['reading all rows', false],
  ] as const) {
    const slow = await openVectorStore(url, { cacheBytes: 0, extension })
    const { times } = await searches(slow, Math.ceil(searchCount / 20))
    without.push({
      what: `SQLite, exact without memory for the vectors, ${way}, p95`,
      value: percentile(times, 95),
      unit: 'ms',
    })
    await slow.close()
  }
  const measured: readonly Measured[] = [
    { what: 'SQLite, exact, p50', value: percentile(times, 50), unit: 'ms' },
    { what: 'SQLite, exact, p95', value: percentile(times, 95), unit: 'ms', target: SQLITE_P95_MS },
    {
      what: 'SQLite, exact, with a filter that leaves one in a hundred, p95',
      value: percentile(filtered.times, 95),
      unit: 'ms',
    },
    { what: 'SQLite, the first search, which reads the vectors', value: first.ms, unit: 'ms' },
    {
      what: 'SQLite, delay of the event loop while it is searched, p99',
      value: delay.percentile(99) / 1e6,
      unit: 'ms',
    },
    ...without,
  ]
  return { measured, found }
}

async function onPostgres(store: SqlVectorStore, truth: readonly (readonly string[])[]): Promise<readonly Measured[]> {
  await searches(store, 20)
  const { times, found } = await searches(store, truth.length)
  const hits = found.map((ids, index) => ids.filter((id) => truth[index]?.includes(id)).length)
  const recall = hits.reduce((sum, one) => sum + one, 0) / (truth.length * 10)
  const filtered = await searches(store, Math.ceil(truth.length / 4), { group: 7 })
  return [
    { what: 'Postgres, HNSW, p50', value: percentile(times, 50), unit: 'ms' },
    { what: 'Postgres, HNSW, p95', value: percentile(times, 95), unit: 'ms', target: POSTGRES_P95_MS },
    { what: 'Postgres, HNSW, recall of 10', value: recall, unit: 'share' },
    {
      what: 'Postgres, with a filter that leaves one in a hundred, p95',
      value: percentile(filtered.times, 95),
      unit: 'ms',
    },
  ]
}

/** The index is built once at the end: row by row it would take several times as long. */
async function fillPostgres(store: SqlVectorStore, count: number): Promise<void> {
  await store.upsert(NAMESPACE, entriesOf(0, 1), { model: 'bench' })
  const generation = (await store.generations.active(NAMESPACE))?.generation
  const [table, index] = [`{embedding_vectors_${generation}}`, `embedding_vectors_${generation}_hnsw`]
  await store.database.write([{ sql: `DROP INDEX {${index}}` }])
  await fill(store, count)
  await store.database.write([
    { sql: `CREATE INDEX ${index} ON ${table} USING hnsw ((embedding::vector(${DIMENSIONS})) vector_cosine_ops)` },
  ])
  await store.database.write([{ sql: `VACUUM (ANALYZE) ${table}` }])
}

const { values } = parseArgs({
  options: {
    ...{ count: { type: 'string' }, searches: { type: 'string' } },
    enforce: { type: 'boolean' },
  },
})
const count = Number(values.count ?? 100_000)
const searchCount = Number(values.searches ?? 200)
const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-vectors-'))
const server = await startPgvector(POSTGRES_SETTINGS)
if (server === null) throw new Error(PGVECTOR_MISSING)
const sqliteUrl = `sqlite:${join(folder, 'vectors.db')}`
const postgresUrl = `${server.url}?timeout=1800000`
const [date = '', time = ''] = new Date(systemClock.nowMs()).toISOString().split(/[T.]/)
let figures: readonly VectorFigure[] = []
try {
  await applyMigrations(postgresUrl, { clock: systemClock, migrate: true })
  const postgres = await openVectorStore(postgresUrl, { migrate: true })
  const sqlite = await openVectorStore(sqliteUrl)
  await fill(sqlite, count)
  await sqlite.close()
  await fillPostgres(postgres, count)
  const { measured, found } = await onSqlite(sqliteUrl, searchCount)
  const indexed = await onPostgres(postgres, found)
  const busy = { unit: 'share', target: BUSY_SHARE } as const
  const onFile = await busyShare(`sqlite:${join(folder, 'busy.db')}`)
  const onServer = await busyShare(postgresUrl)
  const all: readonly Measured[] = [
    ...[...measured, ...indexed],
    { what: 'the embedder is busy, vectors on SQLite', value: onFile, ...busy },
    { what: 'the embedder is busy, vectors on Postgres', value: onServer, ...busy },
  ]
  figures = all.map((one) => ({ ...one, value: rounded(one.value) }))
  await postgres.close()
} finally {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}
const run: VectorResult = {
  ...{ date, times: [`${date} ${time}`], vectors: count, dimensions: DIMENSIONS, searches: searchCount },
  ...{ machine: machineFacts({}), figures },
}
const isStandard = values.count === undefined && values.searches === undefined
const before = isStandard ? await readIfThere<VectorResult>(RESULTS_DIR, VECTOR_RESULTS) : null
const result = withRun<VectorFigure, VectorResult>(before, run, ({ unit, target = 0 }, value) =>
  unit === 'share' ? value >= target : value <= target,
)
console.table(result.figures.map(({ runs, ...figure }) => ({ ...figure, runs: runs?.join(', ') })))
if (isStandard) {
  writeFileSync(join(RESULTS_DIR, VECTOR_RESULTS), `${JSON.stringify(result, null, 2)}\n`)
  await writeDocs(RESULTS_DIR, DOCS_DIR)
}
const missed = result.figures.filter(({ isMet }) => isMet === false)
for (const { what, value, target } of missed) console.log(`missed: ${what}: ${value}, target ${target}`)
process.exitCode = values.enforce === true && missed.length > 0 ? 1 : 0
