/**
 * Worker processes that embed, consolidate, decay and clean up memories, and are killed in the middle of it. Memories, merges,
 * importances and vectors must be those of a run without kills. `node test/chaos/workloads/memories.ts` does the full run, on
 * SQLite and on Postgres; test/crash does a short one.
 */
import { type ChildProcess, fork, type Serializable } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { drain, seededRandom } from '../../../src/testing/index.ts'
import { openVectorStore, stableUuid } from '../../../workloads/embeddings/index.ts'
import { type Memories, openMemories } from '../../../workloads/memories/index.ts'
import { VECTOR_PLACES } from '../../fixtures/workload-places.ts'
import { PGVECTOR_MISSING } from '../../servers/pgvector.ts'

const CHILD = fileURLToPath(new URL('./memories-worker.ts', import.meta.url))
const DECAYS = 3
/** Kills use up attempts. */
const attempts = 1_000

export interface MemoryChaosOptions {
  /** Of an empty database. */
  readonly url: string
  /** Of another one, for the run without kills. */
  readonly cleanUrl: string
  readonly users: number
  readonly processes: number
  /** How often all processes are killed, in each phase. */
  readonly kills: number
  readonly seed: number
  readonly finishMs: number
}

export interface MemoryChaosReport {
  readonly jobs: number
  readonly kills: number
  readonly memories: number
  readonly merges: number
  readonly vectors: number
  readonly violations: readonly string[]
}

/** Two groups that belong together, and one memory that is alone and of no importance. */
function contentsOf(user: number): readonly string[] {
  const [tea, disk] = [`green tea number${user}`, `deployment disk shop${user} friday`]
  return [
    ...[`Ann drinks ${tea} every morning.`, `Every morning Ann drinks ${tea}.`, `In the morning Ann drinks ${tea}.`],
    ...[`The ${disk} was full.`, `Full: the ${disk}.`],
    `Zebras whistle quietly${user}.`,
  ]
}

interface Phase {
  readonly types: readonly string[]
  readonly jobs: number
  /** Whether it embeds or asks the model, which are steps. */
  readonly isStepping: boolean
  enqueue(memories: Memories): Promise<void>
}

/** Each needs what the one before has done. */
function phasesOf(users: number): readonly Phase[] {
  const ids = (user: number) => contentsOf(user).map((content) => stableUuid('chaos', content))
  const owner = (user: number) => ({ workspaceId: 'w', userId: `u${user}` })
  const all = Array.from({ length: users }, (_, user) => user)
  // Every fourth user has a second job with the same memories.
  const consolidated = all.flatMap((user) => (user % 4 === 0 ? [user, user] : [user]))
  return [
    {
      types: ['memory-embedding'],
      jobs: users,
      isStepping: true,
      async enqueue({ mill, repository, jobs: [, embedding] }) {
        for (const user of all) {
          await repository.saveAll(
            contentsOf(user).map((content, at) => ({
              ...{ ...owner(user), id: stableUuid('chaos', content), content, importance: at === 5 ? 0.01 : 0.8 },
            })),
          )
          await mill.enqueue(embedding, { ...owner(user), memoryIds: ids(user) }, { attempts })
        }
      },
    },
    {
      types: ['memory-consolidation'],
      jobs: consolidated.length,
      isStepping: true,
      async enqueue({ mill, jobs: [consolidation] }) {
        for (const user of consolidated) {
          const data = { ...owner(user), memoryIds: ids(user), consolidationType: 'merge' }
          await mill.enqueue(consolidation, data, { attempts })
        }
      },
    },
    {
      types: ['memory-importance-decay', 'memory-cleanup'],
      jobs: DECAYS + 1,
      isStepping: false,
      async enqueue({ mill, jobs: [, , decay, cleanup] }) {
        await mill.enqueueMany(decay, Array(DECAYS).fill({ decayFactor: 0.99 }), { attempts })
        await mill.enqueue(cleanup, { importanceBelow: 0.1, olderThanDays: 0 }, { attempts })
      },
    },
  ]
}

/** The processes, which start and end together. */
class Crew {
  readonly #url: string
  readonly #size: number
  readonly #members = new Set<ChildProcess>()
  #steps = 0
  /** Jobs wait at this step until their processes are killed. */
  #lastStep = Number.POSITIVE_INFINITY

  constructor(url: string, size: number) {
    this.#url = url
    this.#size = size
  }

  /** How many steps all processes together may take from now on. */
  allow(steps: number): void {
    this.#lastStep = this.#steps + steps
  }

  get isAtLastStep(): boolean {
    return this.#steps >= this.#lastStep
  }

  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#size }, () => this.#hire()))
  }

  async #hire(): Promise<void> {
    const child = fork(CHILD, [this.#url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#members.add(child)
    child.once('exit', () => this.#members.delete(child))
    const working = Promise.withResolvers<void>()
    child.on('message', (message) => {
      if (message === 'working') working.resolve()
      else this.#answer(child, message)
    })
    child.once('exit', (code) => working.reject(new Error(`a worker process ended with ${code}`)))
    await working.promise
  }

  #answer(child: ChildProcess, step: Serializable): void {
    this.#steps += 1
    // The process may be gone by now.
    if (!this.isAtLastStep) child.send(step, () => {})
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const exits = [...this.#members].map((child) => once(child, 'exit'))
    for (const child of this.#members) child.kill(signal)
    await Promise.all(exits)
  }
}

export async function runMemoryChaos(options: MemoryChaosOptions): Promise<MemoryChaosReport> {
  const { url, cleanUrl, users, processes, kills, seed, finishMs } = options
  const random = seededRandom(seed)
  const phases = phasesOf(users)
  const expected = await cleanRun(cleanUrl, phases)
  await using memories = await openMemories({ engine: url, migrate: true })
  const crew = new Crew(url, processes)
  const violations: string[] = []
  let killed = 0
  try {
    await crew.start()
    for (const phase of phases) {
      const share = (): number => 1 + Math.floor((random() * phase.jobs) / kills)
      crew.allow(share())
      await phase.enqueue(memories)
      const done = async (): Promise<boolean> => (await unfinished(memories, phase)) === 0
      for (let round = 1; round <= kills && !(await done()); round += 1) {
        // In the middle of their work; a phase without steps is killed by time.
        await until(async () => crew.isAtLastStep || (await done()), phase.isStepping ? finishMs : random() * 100)
        await crew.end('SIGKILL')
        killed += processes
        crew.allow(round < kills ? share() : Number.POSITIVE_INFINITY)
        await crew.start()
      }
      if (!(await until(done, finishMs))) violations.push(`phase ${phase.types} was not finished in time`)
    }
    await crew.end('SIGTERM')
  } finally {
    await crew.end('SIGKILL')
  }
  const found = await stateOf(url, memories)
  for (const name of ['memories', 'merges', 'vectors'] as const) {
    if (!isDeepStrictEqual(found[name], expected[name])) {
      violations.push(`${name} differ: ${different(found[name], expected[name])}`)
    }
  }
  return {
    ...{ jobs: phases.reduce((sum, { jobs }) => sum + jobs, 0), kills: killed, violations },
    ...{ memories: found.memories.length, merges: found.merges.length, vectors: found.vectors.length },
  }
}

/** In this process, one job after the other. */
async function cleanRun(url: string, phases: readonly Phase[]): Promise<State> {
  await using memories = await openMemories({ engine: url, migrate: true })
  for (const phase of phases) {
    await phase.enqueue(memories)
    const jobs = memories.jobs.map((job) => ({ ...job, limit: null }))
    await drain(memories.mill, jobs, { max: 100_000, timeout: '10m', concurrency: 5 })
  }
  return await stateOf(url, memories)
}

async function unfinished({ mill }: Memories, { types }: Phase): Promise<number> {
  const counts = await mill.counts()
  const of = types.map((type) => counts[type] ?? { ready: 0, delayed: 0, inProgress: 0 })
  return of.reduce((sum, { ready, delayed, inProgress }) => sum + ready + delayed + inProgress, 0)
}

type State = Readonly<Record<'memories' | 'merges' | 'vectors', readonly string[]>>

/** The ids of syntheses come from the ids of jobs, so they are named by their sources. */
async function stateOf(url: string, { repository: { database } }: Memories): Promise<State> {
  const merges = await database.read('SELECT target_id, source_id FROM {memory_merges} ORDER BY source_id')
  const names = new Map<string, string>()
  for (const { target_id, source_id } of merges) {
    names.set(String(target_id), `${names.get(String(target_id)) ?? 'of'} ${source_id}`)
  }
  const named = (id: unknown): string => names.get(String(id)) ?? String(id)
  const rows = await database.read('SELECT id, user_id, type, content, importance, embedding_id FROM {memories}')
  const store = await openVectorStore(url)
  const ids = rows.map(({ id }) => String(id))
  const stored = await store.get('memories', ids)
  const { count = 0 } = (await store.namespace('memories')) ?? {}
  await store.close()
  return {
    memories: rows
      .map(({ id, user_id, type, content, importance, embedding_id }) =>
        JSON.stringify([named(id), user_id, type, content, importance, embedding_id === id]),
      )
      .toSorted(),
    merges: merges.map(({ target_id, source_id }) => `${named(target_id)} from ${source_id}`).toSorted(),
    vectors: [
      ...stored.flatMap((one) =>
        one === null ? [] : [JSON.stringify([named(one.id), one.metadata, [...one.vector]])],
      ),
      // None of a memory that is gone.
      ...Array<string>(count - stored.filter((one) => one !== null).length).fill('orphan'),
    ].toSorted(),
  }
}

function different(found: readonly string[], expected: readonly string[]): string {
  const [more, less] = [found.filter((one) => !expected.includes(one)), expected.filter((one) => !found.includes(one))]
  return `${found.length} instead of ${expected.length}; not expected ${more[0]?.slice(0, 300)}; missing ${less[0]?.slice(0, 300)}`
}

async function until(isDone: () => Promise<boolean>, timeoutMs: number): Promise<boolean> {
  for (const untilMs = performance.now() + timeoutMs; performance.now() < untilMs; await sleep(20)) {
    if (await isDone()) return true
  }
  return isDone()
}

if (import.meta.main) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  for (const { name, makePlace } of VECTOR_PLACES) {
    const [place, clean] = [await makePlace(), await makePlace()]
    if (place === null || clean === null) {
      console.log(`${name}: ${PGVECTOR_MISSING}`)
      continue
    }
    console.log(`${name}, seed ${seed}`)
    const places = { url: place.url, cleanUrl: clean.url }
    const report = await runMemoryChaos({ ...places, users: 450, processes: 2, kills: 25, seed, finishMs: 180_000 })
    console.log(JSON.stringify(report, null, 2))
    await Promise.all([place.remove(), clean.remove()])
    if (report.violations.length > 0) process.exitCode = 1
  }
}
