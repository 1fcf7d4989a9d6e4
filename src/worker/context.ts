import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { JobContext, Log, RunningJob } from '../job/definition.ts'
import type { Tenant } from '../job/job.ts'
import type { Predecessor } from '../job/predecessors.ts'
import type { ActiveJob } from './active-job.ts'

export interface ContextParts {
  readonly log: Log
  readonly worker: string
  report(active: ActiveJob, value: unknown): Promise<boolean>
}

/**
 * What a handler receives. Everything but the payload is made when first asked for: a short handler that uses only its
 * payload should cost no more than that.
 */
export class HandlerContext implements JobContext<unknown> {
  readonly payload: unknown
  readonly after: readonly Predecessor[]
  readonly #active: ActiveJob
  readonly #parts: ContextParts
  #log: Log | null = null

  constructor(active: ActiveJob, payload: unknown, after: readonly Predecessor[], parts: ContextParts) {
    this.payload = payload
    this.after = after
    this.#active = active
    this.#parts = parts
  }

  get signal(): AbortSignal {
    return this.#active.signal
  }

  get job(): RunningJob {
    return this.#active.running
  }

  get log(): Log {
    this.#log ??= jobLog(this.#parts, this.#active.running)
    return this.#log
  }

  /** A getter, so that a handler may take it out of the context: `run({ progress })`. */
  get progress(): (value: unknown) => Promise<boolean> {
    return (value) => this.#parts.report(this.#active, value)
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

/** What runs here. Kept per asynchronous call chain, never in a field, so that concurrent jobs cannot mix (X032). */
const current = new AsyncLocalStorage<{ readonly job: RunningJob }>()

/** The job whose handler is calling, however deep; null outside of one. */
export function currentJob(): RunningJob | null {
  return current.getStore()?.job ?? null
}

/** The tenant of the job whose handler is calling; null when the job has none, or outside of one (A60). */
export function currentTenant(): Tenant | null {
  return currentJob()?.tenant ?? null
}

type InJob = { readonly job: RunningJob }

/** Calls a handler as its job, in whatever context the caller is in. */
export function runAsCurrent<Context extends InJob, Answer>(
  context: Context,
  run: (context: Context) => Answer,
): Answer {
  return current.run(context, run, context)
}

/**
 * Calls handlers as their jobs, in the context in which this was made. That costs a fifth of `runAsCurrent`: Node makes a
 * map for every context that is entered, and `AsyncLocalStorage.run` enters the one it came from anew.
 */
export class JobScope {
  readonly #resource = new AsyncResource('millrace.worker')

  run<Context extends InJob, Answer>(context: Context, run: (context: Context) => Answer): Answer {
    return this.#resource.runInAsyncScope(enter<Context, Answer>, undefined, context, run)
  }
}

function enter<Context extends InJob, Answer>(context: Context, run: (context: Context) => Answer): Answer {
  current.enterWith(context)
  return run(context)
}
