/** Every worker that is running or should be, what it runs, and its condition. */

import { presenceOf } from '../engine/capability-checks.ts'
import type { Counts, Engine, HeldPart, KnownWorker } from '../engine/engine.ts'
import { type PauseStore, pausesIn } from '../engine/pauses.ts'
import {
  type AtWork,
  type Beat,
  beatsOf,
  type JobAtWork,
  NO_PRESENCE,
  presenceIn,
  type RememberingPresence,
  type Seen,
  seenOf,
  type WithPresence,
} from '../engine/presence.ts'
import type { Severity } from '../events.ts'
import { omitUndefined } from '../job/known-options.ts'

export const MISSING_MS = 60_000
export const QUIET_MS = 300_000
export const STOPPING_MS = 120_000

/**
 * missing: silent for a minute without having signed off. late: its last beat has expired. overdue: stopping for more
 * than two minutes. stuck: jobs wait for it, it has free slots, and it has finished nothing for five minutes. stopping,
 * working, idle and running (alive, but the store does not know what it does) are normal. Worst first.
 */
export const WORKER_CONDITIONS = [
  'missing',
  'overdue',
  'stuck',
  'late',
  'stopping',
  'working',
  'running',
  'idle',
] as const
export type WorkerCondition = (typeof WORKER_CONDITIONS)[number]

/** Conditions that need attention. */
const ATTENTION: Readonly<Partial<Record<WorkerCondition, { readonly severity: Severity; readonly action: string }>>> =
  Object.freeze({
    missing: { severity: 'critical', action: 'alert the operator and find out why it has to be restarted' },
    overdue: { severity: 'warning', action: 'it may have to be stopped by force' },
    stuck: { severity: 'warning', action: 'jobs wait for it, but it handles none' },
  })

export interface WorkedTypeView {
  readonly type: string
  readonly condition: WorkerCondition
  /** When an attempt of this type last ended in this worker; null before the first. */
  readonly lastJobAtMs: number | null
  readonly running: number
  /** The longest-running jobs, 20 at most. */
  readonly jobs: readonly JobAtWork[]
  /** Where the store gives each worker parts of a type, those that it has. */
  readonly holds?: readonly Pick<HeldPart, 'partition' | 'lag'>[]
}

export interface WorkerView {
  readonly id: string
  readonly condition: WorkerCondition
  /** Null for a normal condition. */
  readonly severity: Severity | null
  /** What to do about the condition; null when there is nothing to do. */
  readonly action: string | null
  readonly seenAtMs: number
  readonly stoppingSinceMs: number | null
  /** Null for a worker of another program, and for one whose last beat has expired. */
  readonly host: string | null
  readonly pid: number | null
  readonly startedAtMs: number | null
  readonly concurrency: number | null
  /** Of the package in its process. This and the next four are null, or false, in a worker of an earlier version. */
  readonly version: string | null
  readonly memoryBytes: number | null
  /** How late its event loop was at worst between its last two beats. */
  readonly loopDelayMs: number | null
  /** Attempts that ended between its last two beats. */
  readonly perSecond: number | null
  /** Whether it stops when it is asked to. */
  readonly drains: boolean
  readonly running: number
  readonly types: readonly WorkedTypeView[]
}

/** A worker of one type, as presence knows it. */
export interface PresentWorker {
  /** Its name, or its type. */
  readonly worker: string
  readonly instance: string
  readonly seenAtMs: number
  /** Its last beat; null once that has expired. */
  readonly beat: Beat | null
  /** A worker that has not handled anything yet counts as quiet from here on. */
  readonly knownSinceMs: number
}

export interface WorkerSources {
  readonly presence: Pick<RememberingPresence, 'list' | 'seen'>
  /** Read only when a worker has been quiet for long: waiting jobs tell stuck from idle. */
  readonly counts: () => Promise<Counts>
  readonly pauses?: Pick<PauseStore, 'list'>
  /** Those that the store knows by itself. One whose heartbeats are known too is one worker. */
  readonly members?: () => Promise<readonly KnownWorker[]>
}

/** Of all processes that work on the engine, as far as it or the presence beside it knows them. */
export async function workersAt(engine: Engine & WithPresence, nowMs: number): Promise<readonly WorkerView[]> {
  const members = engine.workers === undefined ? undefined : async () => (await engine.workers?.()) ?? []
  const presence = members === undefined ? presenceOf(engine) : (presenceIn(engine) ?? NO_PRESENCE)
  const more = omitUndefined({ pauses: pausesIn(engine), members })
  return listWorkers({ presence, counts: () => engine.counts(), ...more }, nowMs)
}

/** Sorted by id. */
export async function listWorkers(sources: WorkerSources, nowMs: number): Promise<readonly WorkerView[]> {
  const [beating, members] = await Promise.all([presentWorkers(sources.presence), sources.members?.() ?? []])
  const heard = new Set(beating.map(({ instance }) => instance))
  const silent = members.filter(({ id }) => !heard.has(id)).flatMap((member) => memberWorkers(member, nowMs))
  const present = [...beating, ...silent]
  const known = new Map(members.map((member) => [member.id, member]))
  const isQuietly = (one: PresentWorker): boolean => one.beat?.status === 'RUNNING' && isQuiet(one, nowMs)
  const lags = present.some(isQuietly) ? await waitingByType(sources) : new Map<string, number>()
  const byInstance = Map.groupBy(present, ({ instance }) => instance)
  return [...byInstance]
    .map(([id, ofTypes]) => withHolds(viewOf(id, ofTypes, lags, nowMs), known.get(id)))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
}

function memberWorkers(member: KnownWorker, nowMs: number): readonly PresentWorker[] {
  return beatsOf([member], nowMs).map((beat) => ({
    ...{ worker: beat.type, instance: member.id, seenAtMs: nowMs, beat, knownSinceMs: nowMs },
  }))
}

function withHolds(view: WorkerView, member: KnownWorker | undefined): WorkerView {
  const { host, holds } = member ?? {}
  if (holds === undefined) return view
  const partsOf = (type: string) =>
    holds.filter((held) => held.type === type).map(({ partition, lag }) => ({ partition, lag }))
  const types = view.types.map((one) => ({ ...one, holds: partsOf(one.type) }))
  return { ...view, host: view.host ?? host ?? null, types }
}

export async function presentWorkers(presence: WorkerSources['presence']): Promise<readonly PresentWorker[]> {
  const [beats, seen] = await Promise.all([presence.list(), presence.seen()])
  const keyOf = ({ type, instance }: Seen): string => `${type}\n${instance}`
  const living = new Map(beats.map((beat) => [keyOf(seenOf(beat)), beat]))
  // A worker whose first beat came between the two reads is in `beats` only.
  const all = new Map([...seen, ...beats.map(seenOf)].map((one) => [keyOf(one), one]))
  return [...all].map(([key, { type, instance, atMs }]) => {
    const beat = living.get(key) ?? null
    return { worker: type, instance, seenAtMs: atMs, beat, knownSinceMs: beat?.work?.startedAtMs ?? atMs }
  })
}

export function isMissing({ seenAtMs }: PresentWorker, nowMs: number): boolean {
  return nowMs - seenAtMs > MISSING_MS
}

export function isQuiet(worker: PresentWorker, nowMs: number): boolean {
  return nowMs - activeAtMs(worker) > QUIET_MS
}

/** When it last did something, or had not to: a paused type starts nothing, so its workers are not expected to end anything. */
export function activeAtMs({ beat, knownSinceMs }: PresentWorker): number {
  const activeMs = beat?.lastJobAtMs ?? knownSinceMs
  return Math.max(activeMs, beat?.work?.pausedUntilMs ?? activeMs)
}

export function isStopOverdue({ stoppingSinceMs }: Beat, nowMs: number): boolean {
  return stoppingSinceMs !== null && nowMs - stoppingSinceMs > STOPPING_MS
}

/** Jobs that could start now, by type. Jobs of a paused type wait for no worker. */
async function waitingByType({ counts, pauses }: WorkerSources): Promise<ReadonlyMap<string, number>> {
  const [counted, paused] = await Promise.all([counts(), pauses?.list() ?? []])
  const waiting = new Map(Object.entries(counted).map(([type, { ready }]) => [type, ready]))
  for (const { type } of paused) waiting.set(type, 0)
  return waiting
}

function viewOf(
  id: string,
  ofTypes: readonly PresentWorker[],
  lags: ReadonlyMap<string, number>,
  nowMs: number,
): WorkerView {
  const works = ofTypes.flatMap(({ beat }) => beat?.work ?? [])
  const [work = null]: readonly (AtWork | null)[] = works
  const running = works.reduce((sum, one) => sum + one.running, 0)
  const isFull = work !== null && running >= work.concurrency
  const types = ofTypes.map((one) => ({
    type: typeOf(one),
    condition: conditionOf(one, { isFull, lag: lags.get(typeOf(one)) ?? 0, nowMs }),
    lastJobAtMs: one.beat?.lastJobAtMs ?? null,
    running: one.beat?.work?.running ?? 0,
    jobs: one.beat?.work?.jobs ?? [],
  }))
  const condition = WORKER_CONDITIONS.find((word) => types.some((one) => one.condition === word)) ?? 'idle'
  return {
    id,
    condition,
    severity: ATTENTION[condition]?.severity ?? null,
    action: ATTENTION[condition]?.action ?? null,
    seenAtMs: Math.max(...ofTypes.map(({ seenAtMs }) => seenAtMs)),
    stoppingSinceMs: ofTypes.find(({ beat }) => beat !== null)?.beat?.stoppingSinceMs ?? null,
    host: work?.host ?? null,
    pid: work?.pid ?? null,
    startedAtMs: work?.startedAtMs ?? null,
    concurrency: work?.concurrency ?? null,
    version: work?.version ?? null,
    memoryBytes: work?.memoryBytes ?? null,
    loopDelayMs: work?.loopDelayMs ?? null,
    perSecond: sumOf(works.flatMap(({ perSecond }) => perSecond ?? [])),
    drains: work?.drains ?? false,
    running,
    types,
  }
}

/** Null for none. */
function sumOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, one) => sum + one, 0)
}

/** What a worker with a name ran is not known once its beat has expired. */
function typeOf({ beat, worker }: PresentWorker): string {
  return beat?.type ?? worker
}

/** A worker that has no free slot, or runs a job of the type, is not stuck. */
function conditionOf(
  present: PresentWorker,
  { isFull, lag, nowMs }: { readonly isFull: boolean; readonly lag: number; readonly nowMs: number },
): WorkerCondition {
  const { beat } = present
  if (isMissing(present, nowMs)) return 'missing'
  if (beat === null) return 'late'
  if (isStopOverdue(beat, nowMs)) return 'overdue'
  if (beat.status === 'SHUTTING_DOWN') return 'stopping'
  if ((beat.work?.running ?? 0) > 0) return 'working'
  if (isQuiet(present, nowMs) && (beat.lag ?? lag) > 0 && !isFull) return 'stuck'
  return beat.work === undefined && beat.lastJobAtMs === null ? 'running' : 'idle'
}
