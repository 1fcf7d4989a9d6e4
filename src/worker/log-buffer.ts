import type { JobLogs, SaidLines } from '../engine/job-logs.ts'
import type { RunningJob } from '../job/definition.ts'
import type { Redactor } from '../job/error-record.ts'
import { encodeLine, LOG_BYTES_MAX, LOG_LEVELS, type LogLevel } from '../job/job-log.ts'
import type { Clock } from '../time/clock.ts'

/** What a worker keeps of what its handlers say. */
export interface KeptLogs {
  readonly level: LogLevel
  readonly lines: number
}

interface LogBufferParts {
  readonly clock: Clock
  readonly logs: JobLogs
  readonly worker: string
  readonly redactor: Redactor
  readonly keep: KeptLogs
  onError(error: unknown): void
}

/** The first lines after a silence are written soon, so that a reader sees them; later ones together. */
const FIRST_MS = 50
const APART_MS = 1_000
/** After failures the pause doubles up to this. */
const APART_MAX_MS = 30_000
/** Lines per call: a store must not be busy with logs for long. */
const LINES_PER_CALL = 500
/** Over all jobs. With more than this the store is too slow for what its handlers say. */
const BUFFERED_BYTES_MAX = 8 * 1024 * 1024

interface Pending {
  readonly job: SaidLines['job']
  lines: string[]
  bytes: number
  skipped: number
}

/**
 * Collects what the handlers of a worker say and writes it about once a second, in one call for all jobs: no handler waits
 * for it, and a job that says nothing costs nothing. A crash loses what was said since the last write.
 */
export class LogBuffer {
  readonly #parts: LogBufferParts
  readonly #lowest: number
  #pending = new Map<string, Pending>()
  #bytes = 0
  /** Lines that no reader will miss by their number, because their job has none that is kept. */
  #lost = 0
  #writing: Promise<void> | null = null
  #cancelTimer: (() => void) | null = null
  #writtenAtMs = Number.NEGATIVE_INFINITY
  #failures = 0

  constructor(parts: LogBufferParts) {
    this.#parts = parts
    this.#lowest = LOG_LEVELS.indexOf(parts.keep.level)
  }

  /** Never throws. */
  say(job: RunningJob, level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void {
    if (LOG_LEVELS.indexOf(level) < this.#lowest) return
    const { clock, worker, redactor } = this.#parts
    const line = encodeLine({ atMs: clock.nowMs(), level, attempt: job.attempt, worker, message, fields }, redactor)
    const pending = this.#pending.get(job.id)
    if (pending === undefined && this.#bytes > BUFFERED_BYTES_MAX) {
      this.#lost += 1
      return
    }
    this.#add(pending ?? this.#open({ id: job.id, type: job.type }), [line])
    this.#arm()
  }

  /** Writes what is left. Rejects never; what could not be written is reported. */
  async close(): Promise<void> {
    this.#cancelTimer?.()
    await this.#writing
    await this.#write()
    this.#cancelTimer?.()
    if (this.#pending.size === 0) return
    const lines = [...this.#pending.values()].reduce((sum, pending) => sum + pending.lines.length, 0)
    this.#parts.onError(new Error(`${lines} log lines of ${this.#pending.size} jobs were not kept`))
  }

  #open(job: SaidLines['job']): Pending {
    const pending: Pending = { job, lines: [], bytes: 0, skipped: 0 }
    this.#pending.set(job.id, pending)
    return pending
  }

  #add(pending: Pending, lines: readonly string[]): void {
    const before = pending.bytes
    for (const line of lines) {
      pending.lines.push(line)
      pending.bytes += Buffer.byteLength(line)
    }
    while (pending.lines.length > 1 && this.#isTooMuch(pending, before)) {
      pending.bytes -= Buffer.byteLength(pending.lines.shift() ?? '')
      pending.skipped += 1
    }
    this.#bytes += pending.bytes - before
  }

  #isTooMuch({ lines, bytes }: Pending, before: number): boolean {
    if (lines.length > this.#parts.keep.lines || bytes > LOG_BYTES_MAX) return true
    return bytes > before && this.#bytes > BUFFERED_BYTES_MAX
  }

  #arm(): void {
    if (this.#cancelTimer !== null || this.#writing !== null) return
    const apartMs = Math.min(APART_MAX_MS, APART_MS * 2 ** this.#failures)
    const sinceMs = this.#parts.clock.monotonicMs() - this.#writtenAtMs
    this.#cancelTimer = this.#parts.clock.after(Math.max(FIRST_MS, apartMs - sinceMs), () => {
      this.#cancelTimer = null
      void this.#write()
    })
  }

  #write(): Promise<void> {
    this.#cancelTimer = null
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null
      this.#writtenAtMs = this.#parts.clock.monotonicMs()
      if (this.#pending.size > 0) this.#arm()
    })
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    const { logs, keep, onError } = this.#parts
    const left = [...this.#pending.values()]
    this.#pending = new Map()
    this.#bytes = 0
    this.#reportLost()
    while (left.length > 0) {
      const part = takeLines(left)
      try {
        await logs.append(part, { lines: keep.lines, bytes: LOG_BYTES_MAX })
        this.#failures = 0
      } catch (error) {
        this.#failures += 1
        onError(error)
        this.#giveBack([...part, ...left])
        return
      }
    }
  }

  /** What was not written comes before what was said meanwhile. After a lost answer a line may be kept twice. */
  #giveBack(parts: readonly SaidLines[]): void {
    const newer = this.#pending
    this.#pending = new Map()
    this.#bytes = 0
    for (const { job, skipped, lines } of parts) {
      const pending = this.#open(job)
      pending.skipped = skipped
      this.#add(pending, lines)
    }
    for (const { job, skipped, lines } of newer.values()) {
      const pending = this.#pending.get(job.id) ?? this.#open(job)
      pending.skipped += skipped
      this.#add(pending, lines)
    }
  }

  #reportLost(): void {
    if (this.#lost === 0) return
    const text = `${this.#lost} log lines were not kept: handlers say more than the store can write; log less, or set 'keepLogs'`
    this.#lost = 0
    this.#parts.onError(new Error(text))
  }
}

/** Removes as many parts from the front as one call takes: at least one. */
function takeLines(left: Pending[]): readonly SaidLines[] {
  const taken: Pending[] = []
  let lines = 0
  for (const pending of left) {
    if (taken.length > 0 && lines + pending.lines.length > LINES_PER_CALL) break
    taken.push(pending)
    lines += pending.lines.length
  }
  left.splice(0, taken.length)
  return taken
}
