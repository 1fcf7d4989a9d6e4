import { AsyncLocalStorage } from 'node:async_hooks'
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

export function runAsCurrent<Context extends { readonly job: RunningJob }, Answer>(
  context: Context,
  run: (context: Context) => Answer,
): Answer {
  return current.run(context, run, context)
}
