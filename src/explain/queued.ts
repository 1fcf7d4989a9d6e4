import { type DefinedLimits, limitsNow } from '../engine/limits.ts'
import type { Beat, Seen } from '../engine/presence.ts'
import { effectiveRank } from '../job/ageing.ts'
import type { JobView } from '../job/job.ts'
import { readinessOf } from '../job/predecessors.ts'
import { type SharedSlots, slotGroup } from '../job/slots.ts'
import { isFinished } from '../job/states.ts'
import { QUIET_MS } from '../observe/workers.ts'
import type { Decision, Note, PutOff, Reason } from './explanation.ts'
import { type ExplainedJob, explainedJob } from './explanation.ts'
import type { Facts } from './facts.ts'

/** Why a queued job has not started. */

/** Starts in this time are mentioned when the type's rate limit is unknown. */
const STARTS_TOLD_MS = 60_000
/** A worker takes a due job within its poll interval. Before that nothing is unusual. */
const WONDER_MS = 5_000

export function decideQueued(facts: Facts): Decision {
  const { job, presence } = facts
  const workers = presence === null ? null : workersOfType(job.type, presence, holdingLimits(facts).concurrency)
  const holdups = [unreadable, waits, delayed, olderVersion, paused, limited, slotsTaken].flatMap(
    (look) => look(facts) ?? [],
  )
  const lacking = noWorker(facts, workers)
  const [first, ...rest] = lacking === null ? holdups : [...holdups, lacking]
  if (first !== undefined)
    return { reasons: [first, ...rest], notes: [...turnNotes(facts), ...limitNotes(facts, [first, ...rest])] }
  const due: Reason = {
    kind: 'due',
    type: job.type,
    sinceMs: job.runAtMs,
    workers: workers === null ? null : workers.running.length,
  }
  const ageings = ageingsOf(workers)
  const [main = due, ...also] = [busy(workers), othersFirst(facts, ageings)].filter((reason) => reason !== null)
  const notes = [
    ...turnNotes(facts),
    ...limitNotes(facts, [main, ...also]),
    ...agedNotes(facts, ageings),
    ...dueNotes(facts, workers, main),
  ]
  return { reasons: [main, ...also], notes }
}

function waits({ job, predecessors }: Facts): Reason | null {
  if (job.after === null) return null
  const { ids, ifDead } = job.after
  const holding = predecessors.filter((view) => view !== null).filter((view) => holdsBack(view, ifDead))
  const notLookedUp = ids.length - predecessors.length
  if (holding.length === 0 && notLookedUp === 0) return null
  return { kind: 'waits-for-jobs', jobs: holding.map(explainedJob), of: ids.length, notLookedUp, ifDead }
}

function holdsBack({ state }: JobView, ifDead: 'wait' | 'run' | 'die'): boolean {
  return state === 'dead_letter' ? ifDead === 'wait' : !isFinished(state)
}

/** A claim needs an integer priority and a valid time. */
function unreadable({ job }: Facts): readonly Reason[] {
  const isPriority = Number.isInteger(job.priority)
  return [
    ...(Number.isFinite(job.runAtMs) ? [] : [{ kind: 'unreadable', field: 'due time', value: job.runAtMs } as const]),
    ...(isPriority ? [] : [{ kind: 'unreadable', field: 'priority', value: job.priority } as const]),
  ]
}

function delayed(facts: Facts): Reason | null {
  const { job, nowMs } = facts
  if (!Number.isFinite(job.runAtMs)) return null
  return job.runAtMs <= nowMs ? null : { kind: 'delayed', untilMs: job.runAtMs, putOff: putOffBy(facts) }
}

/** The last event says why; a log has none, and delays nothing but retries. */
function putOffBy({ job, history }: Facts): PutOff {
  const last = history.at(-1)
  const isRetried = last === undefined ? job.attempt > 0 : last.name === 'retried'
  if (isRetried) return { by: 'retry', attempt: job.attempt, attempts: job.attempts, error: job.error }
  const reason = last?.detail?.reason
  return last?.name === 'released' && typeof reason === 'string' ? { by: 'release', reason } : { by: 'enqueue' }
}

/** One version of a latest key runs at a time. */
function olderVersion({ job, peers }: Facts): Reason | null {
  const { latestKey } = job
  if (latestKey === null) return null
  const older = peers.inProgress.jobs.find((peer) => peer.latestKey === latestKey && peer.id !== job.id)
  return older === undefined ? null : { kind: 'older-version-runs', latestKey, job: explainedJob(older) }
}

function paused({ pause }: Facts): Reason | null {
  return pause === null ? null : { kind: 'paused', pause }
}

/** Those of the definition, or what its workers say of it, unless an operator has set others. */
function holdingLimits(facts: Facts): DefinedLimits {
  const { override } = facts
  const defined = definedLimits(facts)
  return override === null ? defined : limitsNow(defined, override)
}

function definedLimits({ definition, presence, job }: Facts): DefinedLimits {
  if (definition !== null) return definition
  const told = presence?.beats.find(({ type, work }) => type === job.type && work?.slots !== undefined)
  return { concurrency: null, limit: null, slots: told?.work?.slots ?? null }
}

/** That it is an operator's limit, where one holds the job back. */
function limitNotes(facts: Facts, reasons: readonly Reason[]): readonly Note[] {
  const { override } = facts
  if (override === null) return []
  const ofConcurrency = definedLimits(facts).slots === null ? 'slots-busy' : 'slots-taken'
  const isWhy = ({ kind }: Reason): boolean =>
    (kind === 'limit-reached' && override.limit !== undefined) ||
    (kind === ofConcurrency && override.concurrency !== undefined)
  return reasons.some(isWhy) ? [{ kind: 'limits-changed', override }] : []
}

/** Starts that were seen are a lower bound: a job that was given back since no longer tells when it started. */
function limited(facts: Facts): Reason | null {
  const { limit } = holdingLimits(facts)
  if (limit === null) return null
  const starts = startsWithin(facts, limit.perMs)
  const leaving = starts[limit.max - 1]
  if (leaving === undefined) return null
  const jobs = starts.slice(0, limit.max).map(({ job }) => explainedJob(job))
  return { kind: 'limit-reached', ...limit, untilMs: leaving.atMs + limit.perMs, jobs }
}

/** An expired lease has its slot until the job is recovered. */
function holdersOf({ job, peers }: Facts, slots: SharedSlots): readonly JobView[] {
  const group = slotGroup(job.tenant, slots)
  return peers.inProgress.jobs.filter(({ tenant }) => slotGroup(tenant, slots) === group)
}

function slotsTaken(facts: Facts): Reason | null {
  const slots = holdingLimits(facts).slots
  const holders = slots === null ? [] : holdersOf(facts, slots)
  if (slots === null || holders.length < slots.max) return null
  const tenant = slots.by === null ? null : slotGroup(facts.job.tenant, slots)
  return { kind: 'slots-taken', max: slots.max, tenant, jobs: holders.map(explainedJob) }
}

/** The latest first. */
function startsWithin({ peers, nowMs }: Facts, perMs: number) {
  return [...peers.inProgress.jobs, ...peers.completed.jobs]
    .flatMap((job) => (job.startedAtMs === null ? [] : [{ job, atMs: job.startedAtMs }]))
    .filter(({ atMs }) => atMs > nowMs - perMs)
    .sort((one, other) => other.atMs - one.atMs)
}

/** A job of its type under a lease shows a worker, also one without presence. */
function noWorker({ job, peers, nowMs }: Facts, workers: WorkersOfType | null): Reason | null {
  if (workers === null || workers.running.length > 0) return null
  const known = new Set([...workers.stopping, ...workers.missing.map(({ worker }) => worker)])
  const isUnseen = ({ leaseOwner, leaseUntilMs }: JobView): boolean =>
    leaseOwner !== null && !known.has(leaseOwner) && (leaseUntilMs ?? 0) > nowMs
  if (peers.inProgress.jobs.some(isUnseen)) return null
  return { kind: 'no-worker', type: job.type, stopping: workers.stopping, missing: workers.missing }
}

function busy(workers: WorkersOfType | null): Reason | null {
  const running = workers?.running ?? []
  if (running.length === 0 || !running.every(({ isFull }) => isFull)) return null
  return {
    kind: 'slots-busy',
    workers: running.map(({ worker }) => worker),
    jobs: running.flatMap(({ jobs }) => jobs),
  }
}

/** How fast jobs age for its workers; null among them for strict priority. */
function ageingsOf(workers: WorkersOfType | null): readonly (number | null)[] {
  const ageings = new Set(workers?.running.map(({ ageingMs }) => ageingMs))
  return ageings.size === 0 ? [null] : [...ageings]
}

function rankOf({ priority, runAtMs }: JobView, nowMs: number, ageingMs: number | null): number {
  return effectiveRank(priority, nowMs - runAtMs, ageingMs)
}

function agedNotes({ job, nowMs }: Facts, ageings: readonly (number | null)[]): readonly Note[] {
  const rank = Math.max(...ageings.map((ageingMs) => rankOf(job, nowMs, ageingMs)))
  if (rank >= job.priority) return []
  return [{ kind: 'aged', waitedMs: nowMs - job.runAtMs, priority: job.priority, rank }]
}

/**
 * Those that come first for each of its workers. Those with predecessors are left out: whether they may start is not known
 * here.
 */
function othersFirst(facts: Facts, ageings: readonly (number | null)[]): Reason | null {
  const { job, peers, nowMs } = facts
  // The jobs of other tenants stand in no order with it where each has slots of its own.
  const slots = holdingLimits(facts).slots ?? { by: null }
  const isFirst = (peer: JobView): boolean =>
    slotGroup(peer.tenant, slots) === slotGroup(job.tenant, slots) &&
    peer.runAtMs <= nowMs &&
    peer.after === null &&
    ageings.every((ageingMs) => isBefore(peer, job, { nowMs, ageingMs }))
  const count = peers.queued.jobs.filter(isFirst).length
  return count === 0 ? null : { kind: 'others-first', count, isLeast: !peers.queued.isAll }
}

/** Effective rank, then due time, then arrival, which ids tell well enough. */
function isBefore(
  one: JobView,
  other: JobView,
  { nowMs, ageingMs }: { readonly nowMs: number; readonly ageingMs: number | null },
): boolean {
  const [rank, otherRank] = [rankOf(one, nowMs, ageingMs), rankOf(other, nowMs, ageingMs)]
  if (rank !== otherRank) return rank < otherRank
  return one.runAtMs === other.runAtMs ? one.id < other.id : one.runAtMs < other.runAtMs
}

/** What will happen when its turn comes. */
function turnNotes({ job, predecessors }: Facts): readonly Note[] {
  if (job.after === null || predecessors.length < job.after.ids.length) return []
  const turn = readinessOf(job.after, predecessors)
  return turn.kind === 'die' ? [{ kind: 'will-die', error: turn.error.message }] : []
}

function dueNotes(facts: Facts, workers: WorkersOfType | null, main: Reason): readonly Note[] {
  const { job, nowMs, definition } = facts
  if (main.kind !== 'due' || nowMs - job.runAtMs < WONDER_MS) return []
  const starts = definition === null ? startsWithin(facts, STARTS_TOLD_MS).length : 0
  const quiet = quietWorkers(workers, nowMs)
  const slots = facts.peers.inProgress.isAll ? null : holdingLimits(facts).slots
  return [
    ...(slots === null ? [] : [{ kind: 'maybe-slots-taken', ...slots } as const]),
    ...(quiet === null ? [] : [quiet]),
    ...(starts === 0 ? [] : [{ kind: 'maybe-limited', starts, perMs: STARTS_TOLD_MS } as const]),
  ]
}

/** Only if all are quiet: an active worker will take the job. */
function quietWorkers(workers: WorkersOfType | null, nowMs: number): Note | null {
  const running = workers?.running ?? []
  const activeAtMs = Math.max(...running.map((member) => member.activeAtMs ?? Number.POSITIVE_INFINITY))
  if (running.length === 0 || nowMs - activeAtMs <= QUIET_MS) return null
  return { kind: 'quiet-workers', workers: running.map(({ worker }) => worker), forMs: nowMs - activeAtMs }
}

export interface TypeWorker {
  readonly worker: string
  /** When it last finished a job of any type, or started; null if unknown. */
  readonly activeAtMs: number | null
  /** False when its number of slots is unknown. */
  readonly isFull: boolean
  /** How fast jobs age for it; null: strict priority. */
  readonly ageingMs: number | null
  /** Its jobs at the last heartbeat, the longest-running ones. */
  readonly jobs: readonly ExplainedJob[]
}

/** The workers of one type, by their last heartbeats. */
export interface WorkersOfType {
  readonly running: readonly TypeWorker[]
  readonly stopping: readonly string[]
  /** Workers that did not sign off, and when they were last seen. */
  readonly missing: readonly { readonly worker: string; readonly seenAtMs: number }[]
}

/** `concurrency`: the limit per worker of the type's definition. */
export function workersOfType(
  type: string,
  { beats, seen }: { readonly beats: readonly Beat[]; readonly seen: readonly Seen[] },
  concurrency: number | null,
): WorkersOfType {
  const own = beats.filter((beat) => beat.type === type)
  const heard = new Set(own.map(({ instance }) => instance))
  return {
    running: own.filter(({ status }) => status === 'RUNNING').map((beat) => memberOf(beat, beats, concurrency)),
    stopping: own.filter(({ status }) => status === 'SHUTTING_DOWN').map(({ instance }) => instance),
    missing: seen
      .filter((one) => one.type === type && !heard.has(one.instance))
      .map(({ instance, atMs }) => ({ worker: instance, seenAtMs: atMs })),
  }
}

function memberOf(beat: Beat, beats: readonly Beat[], concurrency: number | null): TypeWorker {
  const { instance, work } = beat
  // A worker sends a beat per type, and its types share its slots.
  const all = beats.filter((other) => other.instance === instance)
  const taken = all.reduce((sum, other) => sum + (other.work?.running ?? 0), 0)
  const isNarrow = work !== undefined && concurrency !== null && work.running >= concurrency
  const isFull = work !== undefined && taken >= work.concurrency
  const holding = isFull ? all : [beat]
  const times = all.flatMap((other) => [other.lastJobAtMs ?? [], other.work?.startedAtMs ?? []].flat())
  return {
    worker: instance,
    activeAtMs: times.length === 0 ? null : Math.max(...times),
    isFull: isFull || isNarrow,
    ageingMs: work?.ageingMs ?? null,
    jobs: holding.flatMap(({ type, work: its }) =>
      (its?.jobs ?? []).map(({ id }) => ({ id, type, state: 'in_progress' })),
    ),
  }
}
