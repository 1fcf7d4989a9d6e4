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
  call: (hooks: Hooks) => unknown,
): void {
  const { hooks } = held.type.definition
  if (hooks[name] === undefined) return
  const report = (error: unknown): void => {
    events.emit('hook.error', { job: held.facts, hook: name, error })
  }
  try {
    const answer = call(hooks)
    if (answer instanceof Promise) answer.catch(report)
  } catch (error) {
    report(error)
  }
}
