/** Every worker that lives, or should, with what it runs and how it is. */
import type { Counts, Engine } from '../../engine/engine.ts'
import type { AtWork, Beat, JobAtWork, RememberingPresence, Seen } from '../../engine/presence.ts'
import { type Condition, conditionsOf, isQuiet, type WatchedWorker } from './conditions.ts'
import type { Severity } from './lag.ts'

/**
 * missing: it has not been heard for a minute and has not said goodbye. late: its last beat has run out. overdue: it has
 * been stopping for more than two minutes. stuck: jobs wait for it, it has room for them, and it has handled none for
 * five minutes. stopping, working and idle are as they should be. The worst comes first.
 */
export const WORKER_CONDITIONS = ['missing', 'overdue', 'stuck', 'late', 'stopping', 'working', 'idle'] as const
export type WorkerCondition = (typeof WORKER_CONDITIONS)[number]

export interface WorkedTypeView {
  readonly type: string
  readonly condition: WorkerCondition
  /** When an attempt of it last ended in this worker; null before the first. */
  readonly lastJobAtMs: number | null
  readonly running: number
  /** Those that have run longest, 20 at most. */
  readonly jobs: readonly JobAtWork[]
}

export interface WorkerView {
  readonly id: string
  readonly condition: WorkerCondition
  /** Null for a condition that needs nobody. */
  readonly severity: Severity | null
  /** What to do about it; null where nothing is to be done. */
  readonly action: string | null
  readonly seenAtMs: number
  readonly stoppingSinceMs: number | null
  /** Null for one that is another program's, or is no longer heard. */
  readonly host: string | null
  readonly pid: number | null
  readonly startedAtMs: number | null
  readonly concurrency: number | null
  readonly running: number
  readonly types: readonly WorkedTypeView[]
}

/** What is asked about the workers. */
export interface WorkerSources {
  readonly presence: Pick<RememberingPresence, 'list' | 'seen'>
  /** Asked only when a worker has been quiet for long: whether anything waits for it tells idle from stuck. */
  readonly counts: () => Promise<Counts>
  readonly pauses?: Engine['pauses']
}

/** By id. */
export async function listWorkers(sources: WorkerSources, nowMs: number): Promise<readonly WorkerView[]> {
  const { presence } = sources
  const [beats, seen] = await Promise.all([presence.list(), presence.seen()])
  const watched = watchedOf(beats, seen)
  const lags = watched.some((one) => isQuietly(one, nowMs)) ? await waiting(sources) : new Map<string, number>()
  const crews = Map.groupBy(watched, ({ instance }) => instance)
  return [...crews]
    .map(([id, crew]) => viewOf(id, crew, lags, nowMs))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
}

function watchedOf(beats: readonly Beat[], seen: readonly Seen[]): readonly WatchedWorker[] {
  const keyOf = ({ type, instance }: Seen): string => `${type}\n${instance}`
  const living = new Map(beats.map((beat) => [keyOf(beat), beat]))
  // One that began to beat between the two answers lives all the same.
  const everyone = new Map([...seen, ...beats].map((one) => [keyOf(one), one]))
  return [...everyone].map(([key, { type, instance, atMs }]) => {
    const beat = living.get(key) ?? null
    return {
      worker: type,
      instance,
      seenAtMs: atMs,
      beat,
      knownSinceMs: beat?.work?.startedAtMs ?? atMs,
      retrying: 0,
    }
  })
}

function isQuietly(watched: WatchedWorker, nowMs: number): boolean {
  return watched.beat?.status === 'RUNNING' && isQuiet(watched, nowMs)
}

/** Jobs that could start now, by type. Nothing waits for a worker where its type is paused. */
async function waiting({ counts, pauses }: WorkerSources): Promise<ReadonlyMap<string, number>> {
  const [counted, paused] = await Promise.all([counts(), pauses?.list() ?? []])
  const lags = new Map(Object.entries(counted).map(([type, { ready }]) => [type, ready]))
  for (const { type } of paused) lags.set(type, 0)
  return lags
}

function viewOf(
  id: string,
  crew: readonly WatchedWorker[],
  lags: ReadonlyMap<string, number>,
  nowMs: number,
): WorkerView {
  const works = crew.flatMap(({ beat }) => beat?.work ?? [])
  const [work = null]: readonly (AtWork | null)[] = works
  const running = works.reduce((sum, one) => sum + one.running, 0)
  const isFull = work !== null && running >= work.concurrency
  const judged = crew.map((one) => ({ watched: one, ...judge(one, { isFull, lag: lags.get(one.worker) ?? 0, nowMs }) }))
  const worst = WORKER_CONDITIONS.find((word) => judged.some(({ word: own }) => own === word)) ?? 'idle'
  const reason = judged.find(({ word }) => word === worst)?.reason ?? null
  return {
    id,
    condition: worst,
    severity: reason?.severity ?? null,
    action: reason?.severity == null ? null : reason.action,
    seenAtMs: Math.max(...crew.map(({ seenAtMs }) => seenAtMs)),
    stoppingSinceMs: crew.find(({ beat }) => beat !== null)?.beat?.stoppingSinceMs ?? null,
    host: work?.host ?? null,
    pid: work?.pid ?? null,
    startedAtMs: work?.startedAtMs ?? null,
    concurrency: work?.concurrency ?? null,
    running,
    types: judged.map(({ watched: { worker, beat }, word }) => ({
      type: worker,
      condition: word,
      lastJobAtMs: beat?.lastJobAtMs ?? null,
      running: beat?.work?.running ?? 0,
      jobs: beat?.work?.jobs ?? [],
    })),
  }
}

interface Verdict {
  readonly word: WorkerCondition
  readonly reason: Condition | null
}

/** Document D's conditions, in a word. A worker that has no room left, or runs a job of the type, is not stuck. */
function judge(
  watched: WatchedWorker,
  { isFull, lag, nowMs }: { readonly isFull: boolean; readonly lag: number; readonly nowMs: number },
): Verdict {
  const { beat } = watched
  const isRunning = (beat?.work?.running ?? 0) > 0
  const known = beat === null ? null : { ...beat, lag: beat.lag ?? lag }
  const [reason = null] = conditionsOf({ ...watched, beat: known }, nowMs)
  if (reason?.condition === 'heartbeat-missing') return { word: 'missing', reason }
  if (beat === null) return { word: 'late', reason: null }
  if (reason?.condition === 'shutdown-overdue') return { word: 'overdue', reason }
  if (beat.status === 'SHUTTING_DOWN') return { word: 'stopping', reason: null }
  if (reason?.condition === 'no-message' && !isRunning && !isFull) return { word: 'stuck', reason }
  return { word: isRunning ? 'working' : 'idle', reason: null }
}
