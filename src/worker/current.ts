import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { RunningJob } from '../job/definition.ts'
import type { Tenant } from '../job/job.ts'

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
