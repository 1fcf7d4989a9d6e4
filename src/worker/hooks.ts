import type { Events } from '../events.ts'
import type { Hooks } from '../job/definition.ts'
import type { HeldJob } from './held-job.ts'

/**
 * Calls a job's hooks. They watch: none is waited for, and an error in one, thrown or rejected, becomes a `hook.error`
 * event and changes nothing about the job.
 */
export function callHook<Name extends keyof Hooks>(
  events: Events,
  held: HeldJob,
  name: Name,
  call: (hooks: Hooks, held: HeldJob) => unknown,
): void {
  const report = (error: unknown): void => {
    events.emit('hook.error', { job: held.facts, hook: name, error })
  }
  try {
    const { hooks } = held.type.definition
    if (hooks[name] === undefined) return
    const answer = call(hooks, held)
    if (answer instanceof Promise) answer.catch(report)
  } catch (error) {
    report(error)
  }
}

/** How the hooks of every start are called. Written once, because a function for each job would be made in vain for most. */
export const CALLS = Object.freeze({
  onStart: (hooks: Hooks, held: HeldJob) => hooks.onStart?.(held.running),
  onComplete: (hooks: Hooks, held: HeldJob) => hooks.onComplete?.(held.running, held.answer),
  onFailed: (hooks: Hooks, held: HeldJob) => hooks.onFailed?.(held.running, held.answer, held.outcome?.kind === 'dead'),
})
