import { createHash } from 'node:crypto'
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorCode } from '../../src/errors.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { Answer, Call, Entry, Happening, History } from './entry.ts'

/** Takes down what one process, or one part of a simulation, did and saw. */
export class Recorder {
  readonly by: string
  readonly #write: (entry: Entry) => void
  readonly #times: () => { readonly atMs: number; readonly wallMs: number }
  #calls = 0

  constructor(
    by: string,
    write: (entry: Entry) => void,
    times: () => { readonly atMs: number; readonly wallMs: number } = machineTimes,
  ) {
    this.by = by
    this.#write = write
    this.#times = times
  }

  note(happening: Happening): void {
    this.#write({ ...this.#times(), by: this.by, ...happening })
  }

  /** Writes the call down, makes it, and writes its answer or its error down. */
  async call<Value>(call: Call, make: () => Promise<Value>, answerOf: (value: Value) => Answer): Promise<Value> {
    this.#calls += 1
    const number = this.#calls
    this.#write({ ...this.#times(), by: this.by, ...call, call: number })
    try {
      const value = await make()
      this.#write({ ...this.#times(), by: this.by, ...answerOf(value), call: number })
      return value
    } catch (error) {
      this.#write({ ...this.#times(), by: this.by, ...failureOf(error), call: number })
      throw error
    }
  }
}

/** Codes of errors that promise that nothing was done. A call can be under way while its engine is closed, so ERR_CLOSED does not. */
const REFUSALS: readonly string[] = [
  'ERR_OPTION_INVALID',
  'ERR_UNSUPPORTED',
  'ERR_JOB_UNKNOWN',
  'ERR_SCHEMA_NEWER',
] satisfies ErrorCode[]

function failureOf(error: unknown): Answer {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  const name = typeof code === 'string' ? code : 'unknown'
  const message = error instanceof Error ? error.message : String(error)
  return { what: 'failed', code: name, message, isRefusal: REFUSALS.includes(name) }
}

/** The monotonic clock that all processes of a machine share. */
function machineTimes(): { readonly atMs: number; readonly wallMs: number } {
  return { atMs: Number(process.hrtime.bigint()) / 1e6, wallMs: Date.now() }
}

/** How far apart two entries are between which no time has passed, in milliseconds. */
const NEXT_MS = 1e-6

/**
 * The times of a simulation. All recorders of one history share what it returns: then no two entries have the same time,
 * and their order is the order in which they were written.
 */
export function timesOf(
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>,
): () => { readonly atMs: number; readonly wallMs: number } {
  let [lastMs, more] = [Number.NEGATIVE_INFINITY, 0]
  return () => {
    const nowMs = clock.monotonicMs()
    more = nowMs > lastMs ? 0 : more + 1
    lastMs = nowMs
    return { atMs: nowMs + more * NEXT_MS, wallMs: clock.nowMs() }
  }
}

/**
 * A recorder that writes each entry through to a file of its own in `folder`, so that it outlives the process.
 *
 * @example
 * const recorder = recordTo('./history', `worker-${process.pid}`)
 * const mill = await open(recorded(engine, recorder))
 */
export function recordTo(folder: string, by: string): Recorder {
  const file = openSync(join(folder, `${by}.jsonl`), 'a')
  return new Recorder(by, (entry) => void writeSync(file, `${JSON.stringify(entry)}\n`))
}

/** Reads what all recorders of a folder have written, in the order of time. The last line of a killed process may be torn; it is left out. */
export function readHistory(folder: string): History {
  const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const entries = names.flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line): Entry => JSON.parse(line)),
  )
  return entries.sort((a, b) => a.atMs - b.atMs)
}

/** What a history keeps of a payload or a result. */
export function digestOf(text: string): string {
  return createHash('sha1').update(text).digest('base64url').slice(0, 10)
}
