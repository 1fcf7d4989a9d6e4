import type { ErrorRecord } from '../../job/job.ts'
import { decodeProgress, encodeProgress, type RetryState } from './commit-metadata.ts'
import { type OffsetRange, OffsetRanges } from './offset-ranges.ts'
import { UnsettledOffsets } from './unsettled-offsets.ts'

/** So wide a window can be told whatever is settled in it. */
export const WINDOW_MAX = 8_192
/** A wider one can be told while what is settled in it is in no more pieces. */
export const RANGES_MAX = 512
/** Offsets with a history of failures, at most, before the partition takes no more: each takes room in the metadata. */
export const RETRIES_MAX = 50

const NEVER: RetryState = Object.freeze({ starts: 0, dueMs: 0, firstFailureMs: null })
const ONCE: RetryState = Object.freeze({ starts: 1, dueMs: 0, firstFailureMs: null })

/**
 * What has become of one partition's records. The position to commit is the first offset that is not settled, so a
 * crash may repeat what stands above it and never skips what stands below. What was finished above it, and how often
 * the others were started, is told to the next owner by the metadata of the commit.
 */
export class Watermark {
  /** Where reading goes on: everything below was read. */
  #readTo: number
  /** The first offset that may be unsettled. */
  #position: number
  /** Read and not settled. */
  readonly #open = new UnsettledOffsets()
  /** Between the position and where reading goes on; also what does not exist. */
  readonly #finished = new OffsetRanges()
  /** By earlier owners, where reading has not come to yet; in order. */
  #finishedBefore: readonly OffsetRange[]
  /** Also of offsets that reading has not come to yet, as an earlier owner told them. */
  readonly #retryStates = new Map<number, RetryState>()
  /**
   * How many of those that were read are retried. What was told and not read yet must not count: nothing could be
   * settled to make room for it, and the partition would never be read again.
   */
  #retried = 0

  constructor(position: number, metadata: string | null = null) {
    this.#position = position
    this.#readTo = position
    const { finished, retryStates } = decodeProgress(position, metadata)
    this.#finishedBefore = [...finished]
    for (const [offset, retryState] of retryStates) this.#setRetryState(offset, retryState)
  }

  /** The offset to commit. */
  get position(): number {
    return this.#position
  }

  get readTo(): number {
    return this.#readTo
  }

  /** Records that were read and are not settled. */
  get unsettled(): number {
    return this.#open.size
  }

  /** No more should be read before something is settled: the next owner could not be told. */
  get isFull(): boolean {
    const isWide = this.#readTo - this.#position >= WINDOW_MAX
    return (isWide && this.#finished.size >= RANGES_MAX) || this.isFullOfRetries
  }

  get isFullOfRetries(): boolean {
    return this.#retried >= RETRIES_MAX
  }

  /** A record was read. False when it was finished before: by an owner whose commit could not pass it. */
  read(offset: number): boolean {
    if (offset < this.#readTo) throw new RangeError(`offset ${offset} was read before; reading is at ${this.#readTo}`)
    this.#passOver(offset)
    this.#readTo = offset + 1
    if (this.#wasFinished(offset)) {
      this.#finished.add(offset, offset + 1)
      this.#retryStates.delete(offset)
      this.#advance()
      return false
    }
    this.#open.add(offset)
    if (this.#retryStates.size > 0 && isRetried(this.#retryStates.get(offset) ?? NEVER)) this.#retried += 1
    return true
  }

  /** Everything below was read. Offsets may be missing: compacted away, or marks of transactions. */
  readUpTo(offset: number): void {
    this.#passOver(offset)
    this.#advance()
  }

  /** How often the record was started, here and by earlier owners, and when it may be started again. */
  retryStateOf(offset: number): RetryState {
    const told = this.#retryStates.size === 0 ? undefined : this.#retryStates.get(offset)
    return told ?? (this.#open.isStarted(offset) ? ONCE : NEVER)
  }

  /** Counts a start; answers how many there were with it. */
  start(offset: number): number {
    const retryState = this.retryStateOf(offset)
    // Nearly all records are started once, so that this much is kept where it costs least.
    if (retryState === NEVER && this.#open.has(offset)) this.#open.setStarted(offset, true)
    else this.#setRetryState(offset, { ...retryState, starts: retryState.starts + 1, dueMs: 0 })
    return retryState.starts + 1
  }

  /** It may be started again at `dueMs`. */
  defer(offset: number, dueMs: number, failedAtMs: number): void {
    const retryState = this.retryStateOf(offset)
    this.#setRetryState(offset, { ...retryState, dueMs, firstFailureMs: retryState.firstFailureMs ?? failedAtMs })
  }

  /** It has failed for good, and its letter could not be written: the next owner must know why. */
  fail(offset: number, failure: ErrorRecord, failedAtMs: number): void {
    const retryState = this.retryStateOf(offset)
    this.#setRetryState(offset, { ...retryState, firstFailureMs: retryState.firstFailureMs ?? failedAtMs, failure })
  }

  /** The start does not count as an attempt. */
  release(offset: number, dueMs: number): void {
    const retryState = this.retryStateOf(offset)
    this.#setRetryState(offset, { ...retryState, starts: Math.max(0, retryState.starts - 1), dueMs })
  }

  /** Settled for good. False when it was not open. */
  finish(offset: number): boolean {
    if (!this.#open.delete(offset)) return false
    this.#dropRetryState(offset)
    if (offset !== this.#position) {
      this.#finished.add(offset, offset + 1)
      return true
    }
    this.#position = offset + 1
    this.#advance()
    return true
  }

  /**
   * For the metadata of a commit. `topicId`: of the topic that the offsets belong to. `doubtfulBelow`: null unless nothing
   * more is started here.
   */
  encode(topicId: string | null = null, doubtfulBelow: number | null = null): string {
    const finished = [...this.#finished, ...this.#finishedBefore]
    const retryStates = this.#allRetryStates()
    return encodeProgress(this.#position, { finished, retryStates, topicId, doubtfulBelow })
  }

  *#allRetryStates(): Iterable<readonly [number, RetryState]> {
    yield* this.#retryStates
    for (const offset of this.#open.started(this.#position)) yield [offset, ONCE]
  }

  /** What has not been read below this does not exist, and counts as finished. */
  #passOver(offset: number): void {
    if (offset <= this.#readTo) return
    for (const missing of this.#retryStates.keys())
      if (missing >= this.#readTo && missing < offset) this.#dropRetryState(missing)
    this.#finished.add(this.#readTo, offset)
    this.#readTo = offset
    this.#wasFinished(offset)
  }

  /** Asked in the order of offsets: what lies below is forgotten. */
  #wasFinished(offset: number): boolean {
    if (this.#finishedBefore.length === 0) return false
    const passed = this.#finishedBefore.findIndex(([, to]) => to > offset)
    this.#finishedBefore = passed === -1 ? [] : this.#finishedBefore.slice(passed)
    const first = this.#finishedBefore[0]
    if (first === undefined || first[0] > offset) return false
    this.#finishedBefore = [[offset + 1, first[1]], ...this.#finishedBefore.slice(1)]
    return true
  }

  /** To the first offset that is not settled. */
  #advance(): void {
    this.#position = this.#finished.takeFrom(this.#position) ?? this.#position
  }

  #setRetryState(offset: number, retryState: RetryState): void {
    this.#dropRetryState(offset)
    this.#retryStates.set(offset, retryState)
    if (this.#open.has(offset)) this.#open.setStarted(offset, false)
    if (offset < this.#readTo && isRetried(retryState)) this.#retried += 1
  }

  #dropRetryState(offset: number): void {
    if (this.#retryStates.size === 0) return
    const retryState = this.#retryStates.get(offset)
    if (retryState === undefined) return
    this.#retryStates.delete(offset)
    if (offset < this.#readTo && isRetried(retryState)) this.#retried -= 1
  }
}

/** Those that the metadata has to tell one by one. */
function isRetried({ starts, dueMs }: RetryState): boolean {
  return starts > 1 || dueMs > 0
}
