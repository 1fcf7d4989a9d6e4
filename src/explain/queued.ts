/** Why a queued job has not started. */
import type { JobView } from '../job/job.ts'
import { readinessOf } from '../job/predecessors.ts'
import { QUIET_MS } from '../observe/workers.ts'
import { type Crew, crewOf } from './crew.ts'
import { explainedJob } from './explanation.ts'
import type { Facts } from './facts.ts'
import type { Decision, Note, PutOff, Reason } from './reasons.ts'

/** Starts in this time are told where a type's rate limit is not known. */
const STARTS_TOLD_MS = 60_000
/** A worker takes a due job within its poll; before that there is nothing to wonder about. */
const WONDER_MS = 5_000

export function decideQueued(facts: Facts): Decision {
  const { job, presence, definition } = facts
  const crew = presence === null ? null : crewOf(job.type, presence, definition?.concurrency ?? null)
  const holdups = [unreadable, waits, delayed, olderVersion, paused, limited].flatMap((look) => look(facts) ?? [])
  const lacking = noWorker(facts, crew)
  const [first, ...rest] = lacking === null ? holdups : [...holdups, lacking]
  if (first !== undefined) return { reasons: [first, ...rest], notes: turnNotes(facts) }
  const due: Reason = {
    kind: 'due',
    type: job.type,
    sinceMs: job.runAtMs,
    workers: crew === null ? null : crew.running.length,
  }
  const [main = due, ...also] = [busy(crew), othersFirst(facts)].filter((reason) => reason !== null)
  return { reasons: [main, ...also], notes: [...turnNotes(facts), ...dueNotes(facts, crew, main)] }
}

function waits({ job, predecessors }: Facts): Reason | null {
  if (job.after === null) return null
  const { ids, ifDead } = job.after
  const holding = predecessors.filter((view) => view !== null).filter((view) => holdsBack(view, ifDead))
  const notLookedUp = ids.length - predecessors.length
  if (holding.length === 0 && notLookedUp === 0) return null
  return { kind: 'waits-for-jobs', jobs: holding.map(explainedJob), of: ids.length, notLookedUp, ifDead }
}

function holdsBack({ state, ended }: JobView, ifDead: 'wait' | 'run' | 'die'): boolean {
  if (state === 'dead_letter') return ended === null && ifDead === 'wait'
  return state !== 'completed'
}

/** A claim looks for whole priorities and for times that it can compare. */
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

/** The history's last line is what put it where it is. */
function putOffBy({ job, history }: Facts): PutOff {
  const last = history.at(-1)
  if (last?.name === 'retried') return { by: 'retry', attempt: job.attempt, attempts: job.attempts, error: job.error }
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

/** Starts that were seen are a lower bound: a job that was given back since no longer tells when it started. */
function limited(facts: Facts): Reason | null {
  const limit = facts.definition?.limit ?? null
  if (limit === null) return null
  const starts = startsWithin(facts, limit.perMs)
  const leaving = starts[limit.max - 1]
  if (leaving === undefined) return null
  const jobs = starts.slice(0, limit.max).map(({ job }) => explainedJob(job))
  return { kind: 'limit-reached', ...limit, untilMs: leaving.atMs + limit.perMs, jobs }
}

/** The latest first. */
function startsWithin({ peers, nowMs }: Facts, perMs: number) {
  return [...peers.inProgress.jobs, ...peers.completed.jobs]
    .flatMap((job) => (job.startedAtMs === null ? [] : [{ job, atMs: job.startedAtMs }]))
    .filter(({ atMs }) => atMs > nowMs - perMs)
    .sort((one, other) => other.atMs - one.atMs)
}

/** A job of its type that somebody runs under a lease shows a worker, also one that never says that it lives. */
function noWorker({ job, peers, nowMs }: Facts, crew: Crew | null): Reason | null {
  if (crew === null || crew.running.length > 0) return null
  const told = new Set([...crew.stopping, ...crew.missing.map(({ worker }) => worker)])
  const isUnseen = ({ leaseOwner, leaseUntilMs }: JobView): boolean =>
    leaseOwner !== null && !told.has(leaseOwner) && (leaseUntilMs ?? 0) > nowMs
  if (peers.inProgress.jobs.some(isUnseen)) return null
  return { kind: 'no-worker', type: job.type, stopping: crew.stopping, missing: crew.missing }
}

function busy(crew: Crew | null): Reason | null {
  const running = crew?.running ?? []
  if (running.length === 0 || !running.every(({ isFull }) => isFull)) return null
  return {
    kind: 'slots-busy',
    workers: running.map(({ worker }) => worker),
    jobs: running.flatMap(({ jobs }) => jobs),
  }
}

/** Those with predecessors are left out: whether they may start is not known here. */
function othersFirst({ job, peers, nowMs }: Facts): Reason | null {
  const isFirst = (peer: JobView): boolean => peer.runAtMs <= nowMs && peer.after === null && isBefore(peer, job)
  const count = peers.queued.jobs.filter(isFirst).length
  return count === 0 ? null : { kind: 'others-first', count, isLeast: !peers.queued.isAll }
}

/** Priority, then due time, then arrival, which ids tell well enough. */
function isBefore(one: JobView, other: JobView): boolean {
  if (one.priority !== other.priority) return one.priority < other.priority
  return one.runAtMs === other.runAtMs ? one.id < other.id : one.runAtMs < other.runAtMs
}

/** What is going to happen when its turn comes. */
function turnNotes({ job, predecessors }: Facts): readonly Note[] {
  if (job.after === null || predecessors.length < job.after.ids.length) return []
  const turn = readinessOf(job.after, predecessors)
  return turn.kind === 'die' ? [{ kind: 'will-die', error: turn.error.message }] : []
}

function dueNotes(facts: Facts, crew: Crew | null, main: Reason): readonly Note[] {
  const { job, nowMs, definition } = facts
  if (main.kind !== 'due' || nowMs - job.runAtMs < WONDER_MS) return []
  const starts = definition === null ? startsWithin(facts, STARTS_TOLD_MS).length : 0
  const quiet = quietWorkers(crew, nowMs)
  return [
    ...(quiet === null ? [] : [quiet]),
    ...(starts === 0 ? [] : [{ kind: 'maybe-limited', starts, perMs: STARTS_TOLD_MS } as const]),
  ]
}

/** Only where all are: one that works will take it. */
function quietWorkers(crew: Crew | null, nowMs: number): Note | null {
  const running = crew?.running ?? []
  const activeAtMs = Math.max(...running.map((member) => member.activeAtMs ?? Number.POSITIVE_INFINITY))
  if (running.length === 0 || nowMs - activeAtMs <= QUIET_MS) return null
  return { kind: 'quiet-workers', workers: running.map(({ worker }) => worker), forMs: nowMs - activeAtMs }
}
