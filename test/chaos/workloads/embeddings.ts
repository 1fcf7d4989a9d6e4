/**
 * Worker processes that embed texts, and then move their namespace to another model, and are killed between any two steps. The
 * vectors and the updated rows must be those of a run without kills. `node test/chaos/workloads/embeddings.ts` does the full run,
 * on SQLite and on Postgres; test/crash does a short one.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineJob, type Mill, open } from '../../../src/index.ts'
import { seededRandom } from '../../../src/testing/open-for-test.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { maybe, textOf } from '../../../workloads/database/columns.ts'
import { hashEmbedder, openVectorStore, type SqlVectorStore, stableUuid } from '../../../workloads/embeddings/index.ts'
import { VECTOR_PLACES } from '../../fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../servers/pgvector.ts'
import {
  expectedVersions,
  jobData,
  NAMESPACE,
  NEW_DIMENSIONS,
  OLD_DIMENSIONS,
  textOfVersion,
} from './embeddings-data.ts'

const CHILD = fileURLToPath(new URL('./embeddings-worker.ts', import.meta.url))
/** Worker processes at once, so that jobs about the same sources meet. */
const PROCESSES = 2
/** A job of two batches takes about a dozen. */
const STEPS_MAX = 30
/** A killed run uses an attempt, and one job may meet many kills. */
const ATTEMPTS = 1_000

export interface EmbeddingChaosOptions {
  /** Of an empty database. */
  readonly url: string
  readonly jobs: number
  readonly kills: number
  readonly seed: number
  readonly finishMs: number
}

export interface EmbeddingChaosReport {
  readonly jobs: number
  readonly kills: number
  readonly vectors: number
  readonly seconds: number
  readonly violations: readonly string[]
}

const batch = defineJob({ type: 'embedding-batch', attempts: ATTEMPTS })
const reindex = defineJob({ type: 'embedding-reindex', attempts: ATTEMPTS })

class Stage {
  readonly mill: Mill
  readonly store: SqlVectorStore
  readonly #url: string
  readonly #children = new Set<ChildProcess>()
  kills = 0
  readonly crashes: string[] = []

  constructor(url: string, mill: Mill, store: SqlVectorStore) {
    this.#url = url
    this.mill = mill
    this.store = store
  }

  /** As the allow-list names it: on Postgres the tests' schema is not in the search path. */
  get table(): string {
    const schema = this.#url.startsWith('sqlite:') ? null : new URL(this.#url).searchParams.get('schema')
    return schema === null ? 'documents' : `${schema}.documents`
  }

  hire(killAt: number): ChildProcess {
    const child = fork(CHILD, [this.#url, this.table, String(killAt)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'millrace-chaos-cache') },
    })
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    return child
  }

  async isDone(): Promise<boolean> {
    const counts = Object.values(await this.mill.counts())
    return counts.every(({ ready, delayed, inProgress }) => ready + delayed + inProgress === 0)
  }

  /** Works through everything with processes that kill themselves, then with one that does not. */
  async workOff(kills: number, random: () => number, untilMs: number): Promise<void> {
    // Numbers of their own, so that a seed means the same whichever of the lines is faster.
    const line = async (own: () => number): Promise<void> => {
      for (let round = 0; round < kills / PROCESSES && !(await this.isDone()); round += 1) {
        await this.#work(1 + Math.floor(own() * STEPS_MAX), untilMs)
      }
    }
    const streams = Array.from({ length: PROCESSES }, () => seededRandom(Math.floor(random() * 2 ** 31)))
    await Promise.all(streams.map(line))
    await this.#work(0, untilMs)
  }

  /** One process, until it kills itself or nothing is left to do. */
  async #work(killAt: number, untilMs: number): Promise<void> {
    const child = this.hire(killAt)
    const exited = once(child, 'exit')
    let isOver = false
    void exited.then(() => {
      isOver = true
    })
    while (!isOver && !(await this.isDone()) && systemClock.monotonicMs() < untilMs) await systemClock.sleep(20)
    child.kill('SIGTERM')
    const [code, signal] = await exited
    if (signal === 'SIGKILL') this.kills += 1
    else if (code !== 0 && signal !== 'SIGTERM') this.crashes.push(`a worker process ended by itself with ${code}`)
  }

  killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL')
  }
}

export async function runEmbeddingChaos(options: EmbeddingChaosOptions): Promise<EmbeddingChaosReport> {
  const { url, jobs, kills, seed, finishMs } = options
  const random = seededRandom(seed)
  const startedMs = systemClock.monotonicMs()
  const store = await openVectorStore(url, { migrate: true })
  const mill = await open(url)
  const stage = new Stage(url, mill, store)
  const untilMs = startedMs + finishMs
  // Here, because a killed process that was the leader would delay every recovery by the time until another one is elected.
  const keeper = await mill.keep({ reap: '500ms' })
  try {
    const type = store.database.dialect.name === 'sqlite' ? 'TEXT' : 'UUID'
    await store.database.write([{ sql: `CREATE TABLE {documents} (id ${type} PRIMARY KEY, embedding_id ${type})` }])
    const versions = expectedVersions(jobs)
    await store.database.write(
      [...versions.keys()].map((id) => ({ sql: 'INSERT INTO {documents} (id) VALUES ($1)', values: [id] })),
    )
    const update = { updateTable: stage.table, updateColumn: 'embedding_id' }
    for (let job = 0; job < jobs; job += 1) await mill.enqueue(batch, { ...jobData(job), ...update })
    await stage.workOff(kills, random, untilMs)
    const violations = await judge(stage, versions, OLD_DIMENSIONS)
    // Twice each, as after a replay: nothing may change.
    for (let job = 0; job < jobs; job += 1) await mill.enqueue(batch, { ...jobData(job), ...update })
    await mill.enqueue(reindex, { namespace: NAMESPACE })
    await stage.workOff(Math.ceil(kills / 2), random, untilMs)
    const again = await judge(stage, versions, NEW_DIMENSIONS)
    return {
      ...{ jobs: jobs * 2 + 1, kills: stage.kills, vectors: versions.size },
      seconds: Math.round((systemClock.monotonicMs() - startedMs) / 1_000),
      violations: [...violations, ...again, ...stage.crashes],
    }
  } finally {
    stage.killAll()
    await keeper.stop()
    await mill.close()
    await store.close()
  }
}

/** Each violation is a way in which this differs from one run without kills. */
async function judge(
  stage: Stage,
  versions: ReadonlyMap<string, number>,
  dimensions: number,
): Promise<readonly string[]> {
  const { store, mill } = stage
  const violations: string[] = []
  if (!(await stage.isDone())) violations.push('not finished in time')
  for (const { id, error } of await mill.jobs({ state: 'dead_letter' }))
    violations.push(`${id} died: ${error?.message}`)
  const embedder = hashEmbedder({ dimensions })
  const info = await store.namespace(NAMESPACE)
  if (info?.model !== embedder.model) violations.push(`the namespace holds ${info?.model}, not ${embedder.model}`)
  if (info?.count !== versions.size) violations.push(`${info?.count} vectors instead of ${versions.size}`)
  const generations = (await store.generations.all()).length
  if (generations !== 1) violations.push(`${generations} generations were left`)
  const rows = await store.database.read('SELECT id, embedding_id FROM {documents}')
  const linked = new Map(rows.map((row) => [textOf(row, 'id'), maybe(textOf, row, 'embedding_id')]))
  const sources = [...versions.keys()]
  const ids = sources.map((source) => stableUuid(NAMESPACE, source))
  const stored = await store.get(NAMESPACE, ids)
  const expected = await embedder.embedBatch(sources.map((source) => textOfVersion(source, versions.get(source) ?? 0)))
  for (const [index, source] of sources.entries()) {
    const [one, vector] = [stored[index], expected[index]]
    if (linked.get(source) !== ids[index]) violations.push(`${source} is linked to ${linked.get(source)}`)
    if (one?.seq !== versions.get(source))
      violations.push(`${source} has version ${one?.seq}, not ${versions.get(source)}`)
    if (one?.vector.some((value, place) => value !== vector?.[place]) !== false)
      violations.push(`${source}: another vector`)
  }
  return violations
}

if (import.meta.main) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const jobs = Number(process.argv[2] ?? 500)
  for (const { name, makePlace } of VECTOR_PLACES) {
    console.log(`${name}, seed ${seed}`)
    const place = await makePlace()
    if (place === null) throw new Error(PGVECTOR_MISSING)
    const report = await runEmbeddingChaos({ url: place.url, jobs, kills: 100, seed, finishMs: 1_200_000 })
    console.log(JSON.stringify({ ...report, violations: report.violations.slice(0, 20) }, null, 2))
    await place.remove()
    if (report.violations.length > 0) process.exitCode = 1
  }
}
