import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { JobContext, Log, RunningJob } from '../job/definition.ts'
import type { Tenant } from '../job/job.ts'
import type { Predecessor } from '../job/predecessors.ts'
import type { ActiveJob } from './active-job.ts'
import type { LogBuffer } from './log-buffer.ts'

export interface ContextParts {
  readonly log: Log
  readonly worker: string
  /** Null where what handlers say is not kept with their jobs. */
  readonly kept: LogBuffer | null
  report(active: ActiveJob, value: unknown): Promise<boolean>
}

/**
 * What a handler receives. Everything but the payload is created on first use, so that a short handler pays only for what
 * it uses.
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

  /** A getter, so that a handler can destructure it: `run({ progress })`. */
  get progress(): (value: unknown) => Promise<boolean> {
    return (value) => this.#parts.report(this.#active, value)
  }
}

type Level = keyof Log

/** Every log line of a handler names the job and the attempt, and is kept with the job. */
function jobLog({ log, worker, kept }: ContextParts, job: RunningJob): Log {
  const fields = {
    name: `worker:${job.type}`,
    job_id: job.id,
    job_type: job.type,
    ...(job.name !== job.type && { job_name: job.name }),
    attempts: job.attempt,
    worker_id: worker,
  }
  const write =
    (level: Level): Log[Level] =>
    (text, more) => {
      log[level](text, more === undefined ? fields : { ...more, ...fields })
      kept?.say(job, level, text, more)
    }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** The running job of each asynchronous call chain. Not a field, so that concurrent jobs cannot mix. */
const current = new AsyncLocalStorage<{ readonly job: RunningJob }>()

/** The job whose handler is on the call stack, at any depth. Null outside of a handler. */
export function currentJob(): RunningJob | null {
  return current.getStore()?.job ?? null
}

/** The tenant of the current job. Null when it has none, or outside of a handler. */
export function currentTenant(): Tenant | null {
  return currentJob()?.tenant ?? null
}

type InJob = { readonly job: RunningJob }

/** Calls a handler as its job, in the caller's async context. */
export function runAsCurrent<Context extends InJob, Answer>(
  context: Context,
  run: (context: Context) => Answer,
): Answer {
  return current.run(context, run, context)
}

/**
 * Calls handlers as their jobs, in the async context in which the scope was created. It costs a fifth of `runAsCurrent`:
 * Node builds a map for every context that is entered, and `AsyncLocalStorage.run` re-enters the previous one.
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
