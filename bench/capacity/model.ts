/** What a load needs, by measured costs. A model, not a promise: `assumptionsOf` says what it takes for granted. */
import { median } from '../statistics.ts'

/** Measured on one machine by `measure.ts`. Microseconds are of processor time. */
export interface EngineCost {
  readonly engine: EngineName
  /** Of the process that enqueues and of the one that runs an empty handler, per job. */
  readonly enqueueUs: number
  readonly runUs: number
  /** Of the server, per job: enqueued, claimed and settled. 0 where there is no server. */
  readonly serverUs: number
  /** Jobs per second that one worker process drained, and four of them together, on this machine. */
  readonly drainedPerSecond: number
  readonly drainedByFourPerSecond: number
  /** From enqueue to the start of the handler in an idle system, in another process. */
  readonly pickupP99Ms: number
  /** What a finished job that is kept takes in the store; null where it was not measured. */
  readonly bytesPerJob: number | null
}

export type EngineName = 'sqlite' | 'postgres' | 'redis' | 'kafka'

export interface Load {
  readonly jobsPerDay: number
  /** The longest acceptable wait for a start at the busiest time, for 99 of 100 jobs. */
  readonly p99Ms: number
  /** The busiest second against the mean. */
  readonly peak: number
  /** Processor time of a handler, per job. */
  readonly handlerMs: number
  readonly keepDays: number
  /** Of one server, and of one machine for workers. */
  readonly cores: number
  /** Of one server, in GB: what Redis keeps is in it. */
  readonly memoryGb: number
}

export interface Plan {
  readonly engine: EngineName
  /** Null where it carries the load; else why it does not. */
  readonly refusal: string | null
  /** Servers of the store; 0 for SQLite, which is a file. */
  readonly servers: number
  /** Cores that producers and workers use at the busiest time, and processes of one core each. */
  readonly processes: number
  /** The share of the store's capacity that is used at the busiest time. */
  readonly utilisation: number
  readonly storedGb: number | null
}

/** Over several runs, figure by figure. */
export function medianCosts(runs: readonly (readonly EngineCost[])[]): readonly EngineCost[] {
  return (runs.at(-1) ?? []).map((cost) => {
    const all = runs.flatMap((costs) => costs.filter(({ engine }) => engine === cost.engine))
    const of = (value: (one: EngineCost) => number): number => median(all.map(value))
    return {
      engine: cost.engine,
      enqueueUs: of((one) => one.enqueueUs),
      runUs: of((one) => one.runUs),
      serverUs: of((one) => one.serverUs),
      drainedPerSecond: of((one) => one.drainedPerSecond),
      drainedByFourPerSecond: of((one) => one.drainedByFourPerSecond),
      pickupP99Ms: of((one) => one.pickupP99Ms),
      bytesPerJob: cost.bytesPerJob === null ? null : of((one) => one.bytesPerJob ?? 0),
    }
  })
}

const SECONDS_PER_DAY = 86_400
/** Above this share of a resource, waits grow faster than anyone plans for. */
const UTILISATION_MAX = 0.7
/** Copies of every record; the loss of a broker must lose nothing. */
const KAFKA_COPIES = 3

/** The peak rate in jobs per second. */
export function peakRate({ jobsPerDay, peak }: Load): number {
  return (jobsPerDay / SECONDS_PER_DAY) * peak
}

/** By the wait of a queue with one server: at the share u it is 1 / (1 − u) of that of an idle one. */
function utilisationAllowed({ pickupP99Ms }: EngineCost, { p99Ms }: Load): number {
  return Math.min(UTILISATION_MAX, 1 - pickupP99Ms / p99Ms)
}

/** Jobs per second that one server of the store carries when it does nothing else. */
function serverRate(cost: EngineCost, cores: number): number {
  switch (cost.engine) {
    // One writer at a time, on one machine: more processes do not add to it.
    case 'sqlite':
      return Math.min(cost.drainedPerSecond, cost.drainedByFourPerSecond)
    // Commands run on one thread.
    case 'redis':
      return 1e6 / cost.serverUs
    case 'postgres':
      return (1e6 / cost.serverUs) * cores
    case 'kafka':
      return ((1e6 / cost.serverUs) * cores) / KAFKA_COPIES
    default:
      return cost.engine satisfies never
  }
}

export function planFor(cost: EngineCost, load: Load): Plan {
  const rate = peakRate(load)
  const allowed = utilisationAllowed(cost, load)
  const needed = rate / serverRate(cost, load.cores)
  const workUs = cost.enqueueUs + cost.runUs + load.handlerMs * 1_000
  const processes = Math.max(1, Math.ceil((rate * workUs) / 1e6 / UTILISATION_MAX))
  const storedGb = cost.bytesPerJob === null ? null : (load.jobsPerDay * load.keepDays * cost.bytesPerJob) / 1e9
  const filled = cost.engine === 'redis' ? (storedGb ?? 0) / (load.memoryGb * UTILISATION_MAX) : 0
  const servers = serversFor(cost.engine, Math.max(needed / allowed, filled))
  const plan = { engine: cost.engine, servers, processes, storedGb, utilisation: needed / Math.max(1, servers) }
  return { ...plan, refusal: refusalOf(cost, load, { ...plan, allowed }) }
}

function serversFor(engine: EngineName, wanted: number): number {
  if (engine === 'sqlite') return 0
  if (engine === 'kafka') return Math.max(KAFKA_COPIES, Math.ceil(wanted))
  return Math.max(1, Math.ceil(wanted))
}

function refusalOf(
  cost: EngineCost,
  load: Load,
  { utilisation, processes, servers, allowed }: Omit<Plan, 'refusal'> & { readonly allowed: number },
): string | null {
  if (allowed <= 0) return `its p99 is ${cost.pickupP99Ms.toFixed(1)} ms even when nothing else waits`
  switch (cost.engine) {
    case 'sqlite':
      if (processes > load.cores) return `it is one machine, and the work needs ${processes} cores`
      return utilisation > allowed ? `one file carries ${Math.round(serverRate(cost, load.cores) * allowed)}/s` : null
    case 'postgres':
      return servers > 1 ? `one primary does not do; split the types over ${servers} databases` : null
    // A cluster spreads types over its masters.
    case 'redis':
    case 'kafka':
      return null
    default:
      return cost.engine satisfies never
  }
}

/** The first that carries the load, in the order of what it takes to run them. */
export function choose(plans: readonly Plan[]): Plan | null {
  return plans.find(({ refusal }) => refusal === null) ?? null
}

export function assumptionsOf({ peak, cores, handlerMs, keepDays, memoryGb }: Load): readonly string[] {
  return [
    `the busiest second has ${peak} times the mean (--peak)`,
    `a server has ${cores} cores like those that were measured (--cores); costs per job stay as measured, which was tried on 2 cores only`,
    `handlers use ${handlerMs} ms of processor time (--handler); waiting for others costs nothing here`,
    `finished jobs stay for ${keepDays} days (--keep), payloads have 200 bytes; Redis keeps them in ${memoryGb} GB of memory a server (--memory)`,
    `no resource is used above ${UTILISATION_MAX * 100} %, and less where the p99 asks for it: a wait at the share u is that of an idle system / (1 − u)`,
    `Postgres: one primary, local disk. Redis: one thread a server, types spread over the masters of a cluster. Kafka: ${KAFKA_COPIES} copies, each at the cost of the first`,
    'network and disks keep up; replicas and standbys come on top',
  ]
}
