import { OpenOffsets } from './open-offsets.ts'
import { decodeProgress, encodeProgress, type Trial } from './progress.ts'
import { type Run, Runs } from './runs.ts'

/** So wide a window can be told whatever is settled in it. */
export const WINDOW_MAX = 8_192
/** A wider one can be told while what is settled in it is in no more pieces. */
export const PIECES_MAX = 512
/** Offsets with a history of failures, at most, before the partition takes no more: each takes room in the metadata. */
export const TRIALS_MAX = 50

const NEVER: Trial = Object.freeze({ starts: 0, dueMs: 0, firstFailureMs: null })
const ONCE: Trial = Object.freeze({ starts: 1, dueMs: 0, firstFailureMs: null })

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
  readonly #open = new OpenOffsets()
  /** Between the position and where reading goes on; also what does not exist. */
  readonly #finished = new Runs()
  /** By earlier owners, where reading has not come to yet; in order. */
  #finishedBefore: readonly Run[]
  /** Also of offsets that reading has not come to yet, as an earlier owner told them. */
  readonly #trials = new Map<number, Trial>()
  /**
   * How many of those that were read are retried. What was told and not read yet must not count: nothing could be
   * settled to make room for it, and the partition would never be read again.
   */
  #retried = 0

  constructor(position: number, metadata: string | null = null) {
    this.#position = position
    this.#readTo = position
    const { finished, trials } = decodeProgress(position, metadata)
    this.#finishedBefore = [...finished]
    for (const [offset, trial] of trials) this.#setTrial(offset, trial)
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
    return (isWide && this.#finished.size >= PIECES_MAX) || this.isFullOfRetries
  }

  get isFullOfRetries(): boolean {
    return this.#retried >= TRIALS_MAX
  }

  /** A record was read. False when it was finished before: by an owner whose commit could not pass it. */
  read(offset: number): boolean {
    if (offset < this.#readTo) throw new RangeError(`offset ${offset} was read before; reading is at ${this.#readTo}`)
    this.#passOver(offset)
    this.#readTo = offset + 1
    if (this.#wasFinished(offset)) {
      this.#finished.add(offset, offset + 1)
      this.#trials.delete(offset)
      this.#advance()
      return false
    }
    this.#open.add(offset)
    if (this.#trials.size > 0 && isRetried(this.#trials.get(offset) ?? NEVER)) this.#retried += 1
    return true
  }

  /** Everything below was read. Offsets may be missing: compacted away, or marks of transactions. */
  readUpTo(offset: number): void {
    this.#passOver(offset)
    this.#advance()
  }

  /** How often the record was started, here and by earlier owners, and when it may be started again. */
  trialOf(offset: number): Trial {
    const told = this.#trials.size === 0 ? undefined : this.#trials.get(offset)
    return told ?? (this.#open.isStarted(offset) ? ONCE : NEVER)
  }

  /** Counts a start; answers how many there were with it. */
  start(offset: number): number {
    const trial = this.trialOf(offset)
    // Nearly all records are started once, so that this much is kept where it costs least.
    if (trial === NEVER && this.#open.has(offset)) this.#open.setStarted(offset, true)
    else this.#setTrial(offset, { ...trial, starts: trial.starts + 1, dueMs: 0 })
    return trial.starts + 1
  }

  /** It may be started again at `dueMs`. */
  defer(offset: number, dueMs: number, failedAtMs: number): void {
    const trial = this.trialOf(offset)
    this.#setTrial(offset, { ...trial, dueMs, firstFailureMs: trial.firstFailureMs ?? failedAtMs })
  }

  /** Nobody is to blame: the start is not counted. */
  release(offset: number, dueMs: number): void {
    const trial = this.trialOf(offset)
    this.#setTrial(offset, { ...trial, starts: Math.max(0, trial.starts - 1), dueMs })
  }

  /** Settled for good. False when it was not open. */
  finish(offset: number): boolean {
    if (!this.#open.delete(offset)) return false
    this.#dropTrial(offset)
    if (offset !== this.#position) {
      this.#finished.add(offset, offset + 1)
      return true
    }
    this.#position = offset + 1
    this.#advance()
    return true
  }

  /** For the metadata of a commit. `topicId`: of the topic that the offsets belong to. */
  encode(topicId: string | null = null): string {
    const finished = [...this.#finished, ...this.#finishedBefore]
    return encodeProgress(this.#position, { finished, trials: this.#allTrials(), topicId })
  }

  *#allTrials(): Iterable<readonly [number, Trial]> {
    yield* this.#trials
    for (const offset of this.#open.started()) yield [offset, ONCE]
  }

  /** What has not been read below this does not exist, and counts as finished. */
  #passOver(offset: number): void {
    if (offset <= this.#readTo) return
    for (const missing of this.#trials.keys()) if (missing >= this.#readTo && missing < offset) this.#dropTrial(missing)
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

  #setTrial(offset: number, trial: Trial): void {
    this.#dropTrial(offset)
    this.#trials.set(offset, trial)
    if (this.#open.has(offset)) this.#open.setStarted(offset, false)
    if (offset < this.#readTo && isRetried(trial)) this.#retried += 1
  }

  #dropTrial(offset: number): void {
    if (this.#trials.size === 0) return
    const trial = this.#trials.get(offset)
    if (trial === undefined) return
    this.#trials.delete(offset)
    if (offset < this.#readTo && isRetried(trial)) this.#retried -= 1
  }
}

/** Those that the metadata has to tell one by one. */
function isRetried({ starts, dueMs }: Trial): boolean {
  return starts > 1 || dueMs > 0
}
