/** Questions about one job that several rules ask. */
import { REAPER_LEASE_MS } from '../../src/engine/subscriptions.ts'
import type { JobState } from '../../src/job/states.ts'
import type { AskedOutcome } from '../history/entry.ts'
import type { Ask, Claim, Done, Evidence, JobStory, Settle, Start } from './evidence.ts'

/** How far the clocks of a store and of a process run apart in a few seconds, and what rounding to milliseconds adds. */
export const CLOCK_MS = 50

/** An answer this much later than the longest wait of its call was held up, so the time at which the store gave it is unknown. */
const HELD_UP_MS = 500

export function isHeldUp({ atMs, givenMs, waitMs }: Claim): boolean {
  return givenMs === null || givenMs - atMs > waitMs + HELD_UP_MS
}

/** When the claim that gave it was answered. */
export function givenMs({ claim }: Start): number {
  return claim.givenMs ?? claim.atMs
}

/** The job was acknowledged: the history has its receipt. */
export function isAcknowledged({ ask }: JobStory): boolean {
  return ask !== null && ask.status !== 'unknown'
}

/** When it was surely there; null when that is not known. */
export function knownMs({ ask }: JobStory): number | null {
  return ask?.answeredMs ?? null
}

export function leaseMs({ claim, lease }: Start): number {
  return claim.subscription?.types.get(lease.type)?.leaseMs ?? REAPER_LEASE_MS
}

/** When it was claimed by the clock that counts; null where the engine does not tell. */
export function claimedMs(start: Start): number | null {
  const { untilMs } = start.lease
  return untilMs === undefined || start.claim.source === 'expired' ? null : untilMs - leaseMs(start)
}

/** An outcome of this kind was applied, or may have been. */
export function mayHave({ starts }: JobStory, ...kinds: readonly AskedOutcome['kind'][]): boolean {
  return starts.some(({ settles }) =>
    settles.some(({ outcome, done }) => done !== 'no' && kinds.includes(outcome.kind)),
  )
}

export function mayBeActed({ acts }: JobStory, ...kinds: readonly JobStory['acts'][number]['kind'][]): boolean {
  return acts.some(({ kind, done }) => done !== 'no' && kinds.includes(kind))
}

/** The job with this id that the other one comes after. A duplicate of the same batch stands for the job that it duplicates. */
export function predecessorOf({ jobs }: Evidence, { ask }: JobStory, id: string): JobStory | undefined {
  const named = jobs.get(id)
  const duplicate = named?.asks.find(({ status, batch }) => status === 'duplicate' && batch === ask?.batch)
  return duplicate?.receiptId == null ? named : (jobs.get(duplicate.receiptId) ?? named)
}

/** A fault may have undone something that was said about the job. */
export function mayBeUndone({ trouble }: Evidence, { asks, starts, acts }: JobStory): boolean {
  const undo = trouble.undo(asks[0]?.job.type ?? starts[0]?.lease.type ?? '')
  if (undo.isEmpty) return false
  return (
    asks.some(({ atMs, answeredMs }) => undo.meets(atMs, answeredMs ?? atMs)) ||
    acts.some(({ askedMs, answeredMs }) => undo.meets(askedMs, answeredMs ?? askedMs)) ||
    starts.some(
      (start) =>
        undo.meets(start.claim.atMs, givenMs(start)) ||
        start.settles.some(({ askedMs, answeredMs }) => undo.meets(askedMs, answeredMs ?? askedMs)),
    )
  )
}

/** Whether the holder of a lease may have lost or ended it before `untilMs`, and so another claim may have the job. */
export function mayHaveEnded({ trouble }: Evidence, { acts }: JobStory, start: Start, untilMs: number): boolean {
  return (
    start.settles.some(({ askedMs, done }) => done !== 'no' && askedMs < untilMs) ||
    (start.lostMs !== null && start.lostMs < untilMs) ||
    untilMs >= start.claim.atMs + leaseMs(start) - CLOCK_MS ||
    acts.some(
      ({ kind, done, askedMs }) =>
        kind === 'cancel' && done !== 'no' && askedMs < untilMs && askedMs > start.claim.atMs,
    ) ||
    trouble.wallClock.meets(start.claim.atMs, untilMs) ||
    trouble.undo(start.lease.type).meets(start.claim.atMs, untilMs)
  )
}

/** Something that put a job into a state, and when it may have been carried out. */
export interface Move {
  readonly to: JobState | 'gone'
  readonly done: Done
  readonly fromMs: number
  /** Infinity when no answer was seen. */
  readonly toMs: number
  readonly settle: Settle | null
}

/** The moves of a job that no other one surely came after: one of them is the last. */
export function lastMoves(story: JobStory): readonly Move[] {
  const moves = movesOf(story)
  return moves.filter((move) => !moves.some((other) => other.done === 'yes' && other.fromMs > move.toMs))
}

function movesOf({ ask, starts, acts }: JobStory): readonly Move[] {
  const moves: Move[] = []
  const add = (
    to: Move['to'],
    done: Done,
    fromMs: number,
    answeredMs: number | null,
    settled?: { readonly settle: Settle; readonly fenceMs: number },
  ): void => {
    if (done === 'no') return
    const toMs = done === 'yes' && answeredMs !== null ? answeredMs : (settled?.fenceMs ?? Number.POSITIVE_INFINITY)
    moves.push({ to, done, fromMs, toMs, settle: settled?.settle ?? null })
  }
  if (ask !== null) add('queued', ask.status === 'unknown' ? 'unknown' : 'yes', ask.atMs, ask.answeredMs)
  starts.forEach((start, index) => {
    add('in_progress', 'yes', start.claim.atMs, givenMs(start))
    const next = starts[index + 1]
    // A lease changes nothing any more once the job was given to another.
    const fenceMs = next === undefined ? Number.POSITIVE_INFINITY : givenMs(next)
    for (const settle of start.settles) {
      const { outcome, done, askedMs, answeredMs } = settle
      add(stateAfter(outcome.kind), done, askedMs, answeredMs, { settle, fenceMs })
    }
  })
  for (const { kind, done, askedMs, answeredMs } of acts) add(stateAfter(kind), done, askedMs, answeredMs)
  return moves
}

function stateAfter(kind: AskedOutcome['kind'] | JobStory['acts'][number]['kind']): Move['to'] {
  switch (kind) {
    case 'complete':
      return 'completed'
    case 'dead':
    case 'undo':
      return 'dead_letter'
    case 'retry':
    case 'release':
    case 'replay':
      return 'queued'
    case 'cancel':
      return 'cancelled'
    case 'discard':
      return 'discarded'
    case 'purge':
    case 'erase':
      return 'gone'
    default:
      return kind satisfies never
  }
}

/** An id is known for as long as its job is stored: one that was removed meanwhile is a new job when it is asked for again. */
export function isStoredAgain(asks: readonly Ask[]): boolean {
  return asks.filter(({ status }) => status === 'enqueued' || status === 'replaced').length > 1
}
