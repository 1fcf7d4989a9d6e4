import { decodeProgress, encodeProgress, type Progress, type Trial } from './progress.ts'

/** Offsets between the first unsettled one and the last one read, at most: what the metadata of a commit can tell apart. */
export const WINDOW_MAX = 8_192
/** Offsets with a history of failures, at most, before the partition takes no more: each takes room in the metadata. */
export const TRIALS_MAX = 50

/**
 * What has become of one partition's records. The position to commit is the first offset that is not settled, so a
 * crash may repeat what stands above it and never skips what stands below. What was finished above it, and how often
 * the others were started, is told to the next owner by the metadata of the commit.
 */
export class Watermark {
  /** Where reading goes on: everything below was read. */
  #readTo: bigint
  /** The first offset that may be unsettled. */
  #position: bigint
  readonly #unsettled = new Set<bigint>()
  readonly #finished = new Set<bigint>()
  readonly #trials = new Map<bigint, Trial>()
  #retried = 0

  constructor(position: bigint, metadata: string | null = null) {
    this.#position = position
    this.#readTo = position
    const progress = decodeProgress(position, metadata)
    for (const offset of progress.finished) this.#finished.add(offset)
    for (const [offset, trial] of progress.trials) this.#setTrial(offset, trial)
  }

  /** The offset to commit. */
  get position(): bigint {
    return this.#position
  }

  get readTo(): bigint {
    return this.#readTo
  }

  /** Records that were read and are not settled. */
  get unsettled(): number {
    return this.#unsettled.size
  }

  /** No more should be read before something is settled: the next owner could not be told. */
  get isFull(): boolean {
    return this.#readTo - this.#position >= BigInt(WINDOW_MAX) || this.#retried >= TRIALS_MAX
  }

  /** A record was read. False when it was finished before: by an owner whose commit could not pass it. */
  read(offset: bigint): boolean {
    if (offset < this.#readTo) throw new RangeError(`offset ${offset} was read before; reading is at ${this.#readTo}`)
    this.#readTo = offset + 1n
    if (this.#finished.has(offset)) {
      this.#advance()
      return false
    }
    this.#unsettled.add(offset)
    return true
  }

  /** Everything below was read. Offsets may be missing: compacted away, or marks of transactions. */
  readUpTo(offset: bigint): void {
    if (offset > this.#readTo) this.#readTo = offset
    this.#advance()
  }

  /** How often the record was started, here and by earlier owners, and when it may be started again. */
  trialOf(offset: bigint): Trial {
    return this.#trials.get(offset) ?? { starts: 0, dueMs: 0, firstFailureMs: null }
  }

  /** Counts a start; answers how many there were with it. */
  start(offset: bigint): number {
    const trial = this.trialOf(offset)
    this.#setTrial(offset, { ...trial, starts: trial.starts + 1, dueMs: 0 })
    return trial.starts + 1
  }

  /** It may be started again at `dueMs`. */
  defer(offset: bigint, dueMs: number, failedAtMs: number): void {
    const trial = this.trialOf(offset)
    this.#setTrial(offset, { ...trial, dueMs, firstFailureMs: trial.firstFailureMs ?? failedAtMs })
  }

  /** Nobody is to blame: the start is not counted. */
  release(offset: bigint, dueMs: number): void {
    const trial = this.trialOf(offset)
    this.#setTrial(offset, { ...trial, starts: Math.max(0, trial.starts - 1), dueMs })
  }

  /** Settled for good. False when it was not open. */
  finish(offset: bigint): boolean {
    if (!this.#unsettled.delete(offset)) return false
    this.#dropTrial(offset)
    this.#finished.add(offset)
    if (offset === this.#position) this.#advance()
    return true
  }

  encode(): string {
    return encodeProgress(this.#position, this.#progress())
  }

  #progress(): Progress {
    return { finished: this.#finished, trials: this.#trials }
  }

  /** To the first offset that is not settled; offsets that do not exist are passed over. */
  #advance(): void {
    while (this.#position < this.#readTo && !this.#unsettled.has(this.#position)) {
      this.#finished.delete(this.#position)
      this.#dropTrial(this.#position)
      this.#position += 1n
    }
  }

  #setTrial(offset: bigint, trial: Trial): void {
    this.#dropTrial(offset)
    this.#trials.set(offset, trial)
    if (isRetried(trial)) this.#retried += 1
  }

  #dropTrial(offset: bigint): void {
    const trial = this.#trials.get(offset)
    if (trial === undefined) return
    this.#trials.delete(offset)
    if (isRetried(trial)) this.#retried -= 1
  }
}

/** Those that the metadata has to tell one by one. */
function isRetried({ starts, dueMs }: Trial): boolean {
  return starts > 1 || dueMs > 0
}
