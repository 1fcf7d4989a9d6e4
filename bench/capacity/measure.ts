/**
 * What a job costs on each engine, and how that grows: npm run bench:capacity [-- --jobs N --engines a,b]
 *
 * Processes enqueue and drain jobs with empty handlers while the processor time of theirs and of the server is counted.
 * Each condition has an empty store of its own. Writes bench/results/capacity.json and the tables of docs/capacity.md.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { applyMigrations } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { withRedis } from '../../test/servers/redis.ts'
import { findFamily } from '../families.ts'
import { machineFacts } from '../machine.ts'
import { newPlace, removePlace } from '../place.ts'
import type { MachineFacts } from '../result.ts'
import { withClient } from '../servers/postgres.ts'
import type { Assignment, Taken } from './child.ts'
import type { EngineCost, EngineName } from './model.ts'
import { writeTables } from './page.ts'
import { descendantsCpuUs } from './process-tree.ts'

export interface Measured {
  readonly date: string
  readonly machine: MachineFacts
  readonly jobs: number
  readonly costs: readonly EngineCost[]
  readonly growth: readonly Growth[]
}

/** What changed against one type, no keys, one worker process and an empty store. */
export interface Growth {
  readonly engine: EngineName
  readonly condition: string
  /** Processor time of everybody, per job, against that of the plain run: 1 is no change. */
  readonly cost: number
  /** Drained per second, against the plain run. */
  readonly rate: number
}

interface Condition {
  readonly name: string
  readonly types?: number
  readonly keyed?: boolean
  readonly processes?: number
  /** Finished jobs that are there before, as a multiple of the jobs that are measured. */
  readonly history?: number
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))
/** So many whole runs are published, with their spread. */
const RUNS = 3
const RESULTS = new URL('../results/capacity.json', import.meta.url)
const ENGINES: readonly EngineName[] = ['sqlite', 'postgres', 'redis', 'kafka']
const PICKUP: Readonly<Record<EngineName, readonly [file: string, contender: string]>> = {
  sqlite: ['pickup.json', 'millrace-full'],
  postgres: ['postgres/pickup.json', 'millrace-postgres'],
  redis: ['redis/pickup.json', 'millrace-redis'],
  kafka: ['kafka/pickup.json', 'millrace-kafka'],
}
/** So many times the number of jobs, so that a plain drain takes about a second and single waits do not decide. */
const TIMES: Readonly<Record<EngineName, number>> = { sqlite: 4, postgres: 3, redis: 1, kafka: 8 }
const CONDITIONS: readonly Condition[] = [
  { name: '20 types', types: 20 },
  { name: '100 types', types: 100 },
  { name: 'a key for each job', keyed: true },
  { name: '4 worker processes', processes: 4 },
  { name: 'ten times as many finished jobs in the store', history: 10 },
]

interface Run {
  readonly enqueueUs: number
  readonly runUs: number
  readonly serverUs: number
  readonly perSecond: number
  readonly bytesPerJob: number | null
}

function child(assignment: Assignment): Promise<Taken> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [CHILD, JSON.stringify(assignment)], (error, output) => {
      if (error === null) resolve(JSON.parse(output))
      else reject(error)
    })
  })
}

const sum = (of: readonly number[]): number => of.reduce((total, one) => total + one, 0)

async function run(engine: EngineName, serverUrl: string | null, jobs: number, condition: Condition): Promise<Run> {
  const { types = 1, keyed = false, processes = 1, history = 0 } = condition
  const root = mkdtempSync(join(tmpdir(), 'millrace-capacity-'))
  const place = await newPlace(root, serverUrl)
  try {
    const url = place.url ?? `sqlite:${join(place.dir, 'jobs.db')}`
    if (engine === 'postgres') await applyMigrations(url, { clock: systemClock, migrate: true })
    const assignment = { url, jobs, types, keyed }
    if (history > 0) {
      const before = { ...assignment, jobs: jobs * history, keyed: false }
      await child({ ...before, act: 'enqueue' })
      await child({ ...before, act: 'drain' })
    }
    const sizeBefore = await storedBytes(engine, url)
    const cpuBefore = descendantsCpuUs()
    const enqueued = await child({ ...assignment, act: 'enqueue' })
    const drained = await Promise.all(
      Array.from({ length: processes }, () =>
        child({ ...assignment, act: 'drain', jobs: processes === 1 ? jobs : Number.MAX_SAFE_INTEGER }),
      ),
    )
    const serverCpu = descendantsCpuUs() - cpuBefore
    const done = sum(drained.map((one) => one.jobs))
    if (done < jobs) throw new Error(`${engine}, ${condition.name}: ${done} of ${jobs} jobs were run`)
    const sizeAfter = await storedBytes(engine, url)
    return {
      enqueueUs: enqueued.cpuUs / jobs,
      runUs: sum(drained.map(({ cpuUs }) => cpuUs)) / jobs,
      serverUs: engine === 'sqlite' ? 0 : serverCpu / jobs,
      perSecond: (jobs * 1_000) / spanMs(drained.filter((one) => one.jobs > 0)),
      bytesPerJob: sizeBefore === null || sizeAfter === null ? null : (sizeAfter - sizeBefore) / jobs,
    }
  } finally {
    await removePlace(place)
    rmSync(root, { recursive: true, force: true })
  }
}

function spanMs(of: readonly Taken[]): number {
  return Math.max(...of.map(({ lastMs }) => lastMs)) - Math.min(...of.map(({ firstMs }) => firstMs))
}

async function storedBytes(engine: EngineName, url: string): Promise<number | null> {
  switch (engine) {
    case 'sqlite':
      return statSync(url.slice('sqlite:'.length), { throwIfNoEntry: false })?.size ?? 0
    case 'postgres':
      return withClient(url, async (client) => {
        const { rows } = await client.query(`select pg_database_size(current_database())::float8 as size`)
        return rows[0]?.size
      })
    case 'redis':
      return withRedis(url, async (redis) => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]))
    case 'kafka':
      return null
    default:
      return engine satisfies never
  }
}

function pickupP99Ms(engine: EngineName): number {
  const [file, name] = PICKUP[engine]
  const text = readFileSync(new URL(`../results/${file}`, import.meta.url), 'utf8')
  const stored: { contenders: readonly { name: string; figures: { p99: { value: number } } }[] } = JSON.parse(text)
  const found = stored.contenders.find((one) => one.name === name)
  if (found === undefined) throw new Error(`bench/results/${file} has no figures of ${name}; run npm run bench`)
  return found.figures.p99.value
}

async function measureEngine(engine: EngineName, jobs: number): Promise<{ cost: EngineCost; growth: Growth[] }> {
  const server = (await findFamily(engine).startServer?.()) ?? null
  try {
    const at = (condition: Condition): Promise<Run> => run(engine, server?.url ?? null, jobs, condition)
    // The first one warms the server and the disk; it does not count.
    await at({ name: 'warm-up' })
    const plain = await at({ name: 'plain' })
    const totalUs = ({ enqueueUs, runUs, serverUs }: Run): number => enqueueUs + runUs + serverUs
    const growth: Growth[] = []
    const byName = new Map<string, Run>()
    for (const condition of CONDITIONS) {
      const one = await at(condition)
      byName.set(condition.name, one)
      const [cost, rate] = [totalUs(one) / totalUs(plain), one.perSecond / plain.perSecond]
      growth.push({ engine, condition: condition.name, cost, rate })
      console.log(`${engine}, ${condition.name}: ${cost.toFixed(2)} × the cost, ${rate.toFixed(2)} × the rate`)
    }
    const cost: EngineCost = {
      engine,
      ...{ enqueueUs: plain.enqueueUs, runUs: plain.runUs, serverUs: plain.serverUs },
      drainedPerSecond: plain.perSecond,
      drainedByFourPerSecond: byName.get('4 worker processes')?.perSecond ?? plain.perSecond,
      pickupP99Ms: pickupP99Ms(engine),
      bytesPerJob: plain.bytesPerJob,
    }
    console.log(cost)
    return { cost, growth }
  } finally {
    await server?.stop()
  }
}

/** The last runs at standard size, the oldest first. */
export function storedRuns(): readonly Measured[] {
  return existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')) : []
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { jobs: { type: 'string', default: '10000' }, engines: { type: 'string', default: ENGINES.join() } },
  })
  const jobs = Number(values.jobs)
  const engines = ENGINES.filter((engine) => values.engines.split(',').includes(engine))
  const machine = machineFacts({})
  const results = []
  for (const engine of engines) results.push(await measureEngine(engine, jobs * TIMES[engine]))
  const measured: Measured = {
    ...{ date: new Date().toISOString().slice(0, 16).replace('T', ' '), machine, jobs },
    costs: results.map(({ cost }) => cost),
    growth: results.flatMap(({ growth }) => growth),
  }
  if (engines.length < ENGINES.length || values.jobs !== '10000') {
    console.log('Not a run of all engines at standard size: nothing is written.')
  } else {
    const runs = [...storedRuns(), measured].slice(-RUNS)
    writeFileSync(RESULTS, `${JSON.stringify(runs, null, 2)}\n`)
    writeTables(runs)
  }
}
