/** The handlers of the workload: they do what the plan in the payload says for this attempt, and write it down. */
import type { Mill } from '../../src/client/mill.ts'
import { isMillraceError, NonRetryable, Offline, Postpone, RetryAfter } from '../../src/errors.ts'
import type { JobContext } from '../../src/job/definition.ts'
import type { Clock } from '../../src/time/clock.ts'
import { currentJob } from '../../src/worker/context.ts'
import type { Recorder } from '../history/recorder.ts'
import type { Plan, PlanDefinition, PlanHandler } from './definitions.ts'
import type { Behaviour } from './operation.ts'

export interface HandlerParts {
  /** Where handlers enqueue further jobs. */
  readonly mill: Pick<Mill, 'enqueueMany'>
  readonly recorder: Recorder
  readonly clock: Clock
  /** Kills the process. In a simulation the promise never settles. */
  readonly crash: () => Promise<never>
  /** Keeps the event loop busy. In a simulation nothing, or a step of the clock. */
  readonly block: (ms: number) => void
}

/**
 * What a worker of the workload runs.
 *
 * @example
 * const handlers = handlersFor(definitionsFor(abilities, 1), { mill, recorder, clock, crash, block })
 * const worker = await mill.work(handlers, workerOptionsFor(abilities, 0))
 */
export function handlersFor(
  definitions: ReadonlyMap<string, PlanDefinition>,
  parts: HandlerParts,
): readonly PlanHandler[] {
  const given = new Map<string, number>()
  return [...definitions.values()].map((definition) =>
    definition.handledBy(async (context) => {
      const { recorder } = parts
      const { id, attempt, token } = context.job
      const start = { id, attempt, token }
      recorder.note({ what: 'begin', ...start })
      const { signal } = context
      signal.addEventListener('abort', () =>
        recorder.note({ what: 'aborted', ...start, code: isMillraceError(signal.reason) ? signal.reason.code : '' }),
      )
      const end = (how: 'returned' | 'threw'): void => recorder.note({ what: 'end', ...start, how })
      try {
        judgeContext(context, recorder)
        const result = await behave({ ...parts, definition, context, given })
        end('returned')
        return result
      } catch (error) {
        end('threw')
        throw error
      }
    }),
  )
}

/** How many of these handlers a worker may run at once, as an entry `process` has it. */
export function concurrencyOf(handlers: readonly PlanHandler[], all: number): Readonly<Record<string, number>> {
  const own = handlers.flatMap(({ type, concurrency }) => (concurrency === null ? [] : [[type, concurrency] as const]))
  return { '': all, ...Object.fromEntries(own) }
}

/** The context of a handler must be that of its own job, however many run at once. */
function judgeContext({ job, after }: JobContext<Plan>, recorder: Recorder): void {
  const current = currentJob()
  if (current?.token !== job.token) {
    const sentence = `the handler of ${job.id} found ${current?.id ?? 'no job'} as the current one`
    recorder.note({ what: 'seen', rule: 'context', job: job.id, isPromised: false, sentence })
  }
  for (const { id, state, result } of after) {
    if (state !== 'completed' || numberOf(result) !== null) continue
    const sentence = `${job.id} came after ${id}, which completed, and was given another result: ${JSON.stringify(result)}`
    recorder.note({ what: 'seen', rule: 'dependencies', job: job.id, isPromised: false, sentence })
  }
}

/** What every handler of the workload returns. */
export function numberOf(result: unknown): number | string | null {
  const n: unknown = typeof result === 'object' && result !== null ? Reflect.get(result, 'n') : null
  return typeof n === 'number' || typeof n === 'string' ? n : null
}

interface Start extends HandlerParts {
  readonly definition: PlanDefinition
  readonly context: JobContext<Plan>
  /** By job, how often this process has given it back. */
  readonly given: Map<string, number>
}

/** NUL, and half of a surrogate pair. */
const UNSTORABLE = 'as planned, with \0 and \ud83d'

const RETURN: Behaviour = { do: 'return', afterMs: 0 }

async function behave(start: Start): Promise<unknown> {
  const { context, clock } = start
  const { job, payload, signal } = context
  const { n, behaviours } = payload
  const result = { n, attempt: job.attempt }
  const behaviour = behaviours[Math.min(job.attempt, behaviours.length) - 1] ?? RETURN
  switch (behaviour.do) {
    case 'return':
      await clock.sleep(behaviour.afterMs, signal)
      return result
    case 'throw':
      await clock.sleep(behaviour.afterMs, signal)
      if (behaviour.how === 'non-retryable') throw new NonRetryable('as planned, for good')
      throw new Error(behaviour.how === 'unstorable' ? UNSTORABLE : 'as planned')
    case 'retry-after':
      throw new RetryAfter(behaviour.delayMs, 'as planned')
    case 'offline':
    case 'postpone':
      giveBack(start, behaviour)
      return result
    case 'hang':
      await clock.sleep(behaviour.forMs, behaviour.heeds ? signal : undefined)
      if (behaviour.heeds) signal.throwIfAborted()
      return result
    case 'block':
      start.block(behaviour.forMs)
      return result
    case 'report':
      await report(start, behaviour)
      return result
    case 'enqueue':
      await clock.sleep(behaviour.afterMs, signal)
      await enqueueMore(start, behaviour.count)
      return result
    case 'return-nonsense':
      return { n, value: 1n }
    case 'crash':
      return await start.crash()
    default:
      return behaviour satisfies never
  }
}

/** Attempts are not counted for these, so each process counts by itself: none gives a job back for ever. */
function giveBack({ context, given }: Start, plan: Behaviour & { readonly do: 'offline' | 'postpone' }): void {
  const { id } = context.job
  const times = given.get(id) ?? 0
  if (times >= plan.times) return
  given.set(id, times + 1)
  throw plan.do === 'offline'
    ? new Offline('as planned', { delay: plan.delayMs })
    : new Postpone(plan.delayMs, 'as planned')
}

async function report({ context, clock }: Start, plan: Behaviour & { readonly do: 'report' }): Promise<void> {
  for (let step = 1; step <= plan.steps; step += 1) {
    if (!(await context.progress({ step, of: plan.steps }))) return
    await clock.sleep(plan.everyMs, context.signal)
  }
}

/**
 * A failure of the store fails the attempt, as with any handler that enqueues. A mill that closes takes jobs of handlers
 * until their time to finish is over.
 */
async function enqueueMore({ context, definition, mill, recorder }: Start, count: number): Promise<void> {
  const { id, attempt } = context.job
  const payloads = Array.from({ length: count }, (_, index) => ({
    n: `${id}-${attempt}-${index}`,
    ...(definition.version === 1 ? { behaviours: [RETURN] } : { steps: [RETURN] }),
  }))
  try {
    await mill.enqueueMany(definition, payloads)
  } catch (error) {
    if (isMillraceError(error, 'ERR_CLOSED') && !context.signal.aborted) {
      const sentence = `the handler of ${id} was not aborted, and could not enqueue: ${String(error)}`
      recorder.note({ what: 'seen', rule: 'I8', job: id, isPromised: false, sentence })
    }
    throw error
  }
}
