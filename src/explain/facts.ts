import type { Engine, Lookup } from '../engine/engine.ts'
import { type LimitOverride, limitsIn } from '../engine/limits.ts'
import { type Pause, pausesIn } from '../engine/pauses.ts'
import { type Beat, knownWorkers, type Seen, type WithPresence } from '../engine/presence.ts'
import { UnknownJobError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import type { JobEvent, JobView } from '../job/job.ts'
import { isFinished } from '../job/states.ts'

/** What is known about a job, each part read once. */
export interface Facts {
  readonly nowMs: number
  readonly job: JobView
  /** Oldest first. */
  readonly history: readonly JobEvent[]
  /** In the order of `after.ids`, null for removed jobs; at most `PREDECESSORS_LOOKED_UP_MAX`. */
  readonly predecessors: readonly (JobView | null)[]
  /** The newer version that superseded the job. */
  readonly successor: JobView | null
  readonly pause: Pause | null
  /** Limits of its type that hold instead of the definition's. */
  readonly override: LimitOverride | null
  /** Null without presence. */
  readonly presence: { readonly beats: readonly Beat[]; readonly seen: readonly Seen[] } | null
  /** The newest jobs of its type by state, at most `LOOKED_AT_MAX` each. */
  readonly peers: { readonly queued: Peers; readonly inProgress: Peers; readonly completed: Peers }
  /** Null when the definition is unknown. */
  readonly definition: Pick<AnyJob, 'limit' | 'concurrency' | 'slots'> | null
  /** Whether leases expire, and how long after that a job is recovered at the latest. */
  readonly recovery: { readonly byReaper: boolean; readonly maxMs: number | null }
}

export interface Peers {
  readonly jobs: readonly JobView[]
  /** Whether these are all. */
  readonly isAll: boolean
}

const NO_PEERS: Peers = Object.freeze({ jobs: [], isAll: true })

/** An explanation takes a few reads of this size, however many jobs there are. */
export const LOOKED_AT_MAX = 100
/** Of the running jobs of a type with slots: those of one tenant must be found among them. */
const HOLDERS_LOOKED_AT_MAX = 1_000
const PREDECESSORS_LOOKED_UP_MAX = 200

export interface Asked {
  readonly engine: Engine & WithPresence
  readonly lookup: Lookup
  readonly id: string
  readonly nowMs: number
  readonly jobs: readonly AnyJob[]
}

/** Throws an UnknownJobError when there is no such job. */
export async function collectFacts(asked: Asked): Promise<Facts> {
  const { engine, lookup, id } = asked
  const { recovery, recoveryMaxMs } = engine.capabilities
  const [job = null] = await lookup.find([id])
  if (job === null) throw new UnknownJobError(id)
  const history = (await engine.inspector?.history(id)) ?? []
  const isOver = isFinished(job.state)
  const isQueued = job.state === 'queued'
  const definition = asked.jobs.find(({ type }) => type === job.type) ?? null
  const hasSlots = definition !== null && definition.slots !== null
  const [pauses, overrides, presence, predecessors, successor, peers] = await Promise.all([
    isOver ? null : known(() => pausesIn(engine)?.list()),
    isQueued ? known(() => limitsIn(engine)?.list()) : null,
    isOver ? null : known(() => presenceOf(engine, asked.nowMs)),
    isQueued ? predecessorsOf(lookup, job) : [],
    successorOf(lookup, job, history),
    isQueued
      ? peersOf(engine, lookup, { type: job.type, hasSlots })
      : { queued: NO_PEERS, inProgress: NO_PEERS, completed: NO_PEERS },
  ])
  return {
    nowMs: asked.nowMs,
    job,
    history,
    predecessors,
    successor,
    pause: pauses?.find(({ type }) => type === job.type) ?? null,
    override: overrides?.find(({ type }) => type === job.type) ?? null,
    presence,
    peers,
    definition,
    recovery: { byReaper: recovery === 'reaper', maxMs: recoveryMaxMs },
  }
}

/** Null when the facet is missing or fails: the explanation then says less, but nothing wrong. */
async function known<Answer>(ask: () => Promise<Answer> | undefined): Promise<Answer | null> {
  try {
    return (await ask()) ?? null
  } catch {
    return null
  }
}

async function presenceOf(engine: Engine & WithPresence, nowMs: number): Promise<Facts['presence']> {
  const presence = knownWorkers(engine, { nowMs: () => nowMs })
  if (presence === undefined) return null
  const [beats, seen] = await Promise.all([presence.list(), presence.seen()])
  return { beats, seen }
}

function predecessorsOf(lookup: Lookup, { after }: JobView): Promise<readonly (JobView | null)[]> {
  const ids = after?.ids.slice(0, PREDECESSORS_LOOKED_UP_MAX) ?? []
  return lookup.find(ids)
}

async function successorOf(lookup: Lookup, { state }: JobView, history: readonly JobEvent[]): Promise<JobView | null> {
  const by = state === 'superseded' ? history.findLast(({ name }) => name === 'superseded')?.detail?.by : null
  return typeof by === 'string' ? ((await lookup.find([by]))[0] ?? null) : null
}

/** A log lists by state only what runs. */
async function peersOf(
  engine: Engine,
  lookup: Lookup,
  { type, hasSlots }: { readonly type: string; readonly hasSlots: boolean },
): Promise<Facts['peers']> {
  const look = async (state: 'queued' | 'in_progress' | 'completed'): Promise<Peers> => {
    const limit = hasSlots && state === 'in_progress' ? HOLDERS_LOOKED_AT_MAX : LOOKED_AT_MAX
    const jobs = await lookup.list({ type, state, limit })
    return { jobs, isAll: jobs.length < limit }
  }
  if (engine.inspector === undefined)
    return { queued: NO_PEERS, inProgress: await look('in_progress'), completed: NO_PEERS }
  const [queued, inProgress, completed] = await Promise.all([look('queued'), look('in_progress'), look('completed')])
  return { queued, inProgress, completed }
}
