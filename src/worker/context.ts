import type { JobContext, Log, RunningJob } from '../job/definition.ts'
import type { Predecessor } from '../job/predecessors.ts'
import type { HeldJob } from './held-job.ts'

export interface ContextParts {
  readonly log: Log
  readonly worker: string
  report(held: HeldJob, value: unknown): Promise<boolean>
}

/**
 * What a handler receives. Everything but the payload is made when first asked for: a short handler that uses only its
 * payload should cost no more than that.
 */
export class HandlerContext implements JobContext<unknown> {
  readonly payload: unknown
  readonly after: readonly Predecessor[]
  readonly #held: HeldJob
  readonly #parts: ContextParts
  #log: Log | null = null

  constructor(held: HeldJob, payload: unknown, after: readonly Predecessor[], parts: ContextParts) {
    this.payload = payload
    this.after = after
    this.#held = held
    this.#parts = parts
  }

  get signal(): AbortSignal {
    return this.#held.signal
  }

  get job(): RunningJob {
    return this.#held.running
  }

  get log(): Log {
    this.#log ??= jobLog(this.#parts, this.#held.running)
    return this.#log
  }

  /** A getter, so that a handler may take it out of the context: `run({ progress })`. */
  get progress(): (value: unknown) => Promise<boolean> {
    return (value) => this.#parts.report(this.#held, value)
  }
}

type Level = keyof Log

/** Every line of a handler says which start of which job wrote it (A55, B159). */
function jobLog({ log, worker }: ContextParts, job: RunningJob): Log {
  const fields = {
    name: `worker:${job.type}`,
    job_id: job.id,
    job_type: job.type,
    attempts: job.attempt,
    worker_id: worker,
  }
  const write =
    (level: Level): Log[Level] =>
    (text, more) =>
      log[level](text, more === undefined ? fields : { ...more, ...fields })
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
