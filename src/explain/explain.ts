import { lookupOf } from '../engine/capability-checks.ts'
import type { Engine } from '../engine/engine.ts'
import type { WithPresence } from '../engine/presence.ts'
import { isMillraceError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import { errorText } from '../job/error-record.ts'
import { ANSWER_MS } from '../observe/observed-mill.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { within } from '../time/wait.ts'
import { decide } from './decide.ts'
import type { Decision, Reason } from './explanation.ts'
import { EXPLAINED_JOBS_MAX, type ExplainedJob, type Explanation } from './explanation.ts'
import { collectFacts } from './facts.ts'
import { noteText, reasonText } from './messages.ts'

export interface ExplainOptions {
  /** Definitions: rate limits and the concurrency of types are known only with them. */
  readonly jobs?: readonly AnyJob[]
  readonly clock?: Clock
}

const COLLECT_MS = 5_000

/**
 * Why a job is not running, or what it is doing. It takes a few bounded reads and changes nothing. Throws an UnknownJobError
 * for an unknown id. An engine that does not answer is an explanation too.
 *
 * @example
 * const { because, text, untilMs } = await explainJob(mill, id)
 * console.log(text)
 */
export async function explainJob(
  { engine }: { readonly engine: Engine & WithPresence },
  id: string,
  options: ExplainOptions = {},
): Promise<Explanation> {
  const { jobs = [], clock = systemClock } = options
  const lookup = lookupOf(engine)
  try {
    const asked = { engine, lookup, id, nowMs: clock.nowMs(), jobs }
    const facts = await within(clock, COLLECT_MS, `looking at job ${id}`, () => collectFacts(asked))
    return toExplanation(decide(facts), facts.nowMs)
  } catch (error) {
    if (isMillraceError(error, 'ERR_JOB_UNKNOWN', 'ERR_CLOSED')) throw error
    const down = await pingError(engine, clock)
    if (down === null) throw error
    const reasons = [{ kind: 'engine-down', engine: engine.name, error: errorText(down) }] as const
    return toExplanation({ reasons, notes: [] }, clock.nowMs())
  }
}

/** Null when the engine answers. */
async function pingError(engine: Engine, clock: Clock): Promise<unknown> {
  try {
    await within(clock, ANSWER_MS, 'a ping of the engine', () => engine.ping())
    return null
  } catch (error) {
    return error
  }
}

function toExplanation({ reasons, notes }: Decision, nowMs: number): Explanation {
  const [main, ...others] = reasons
  return {
    because: main.kind,
    text: reasonText(main, nowMs),
    also: [...others.map((reason) => reasonText(reason, nowMs)), ...notes.map((note) => noteText(note, nowMs))],
    untilMs: untilMs(reasons),
    jobs: reasons.flatMap(jobsOf).slice(0, EXPLAINED_JOBS_MAX),
  }
}

/** The latest known time; null if something without a time holds it back too. */
function untilMs(reasons: readonly Reason[]): number | null {
  const times: number[] = []
  for (const reason of reasons) {
    if (reason.kind === 'delayed' || reason.kind === 'limit-reached') times.push(reason.untilMs)
    else if (reason.kind !== 'no-worker') return null
  }
  return times.length === 0 ? null : Math.max(...times)
}

function jobsOf(reason: Reason): readonly ExplainedJob[] {
  switch (reason.kind) {
    case 'waits-for-jobs':
    case 'limit-reached':
    case 'slots-taken':
    case 'slots-busy':
      return reason.jobs
    case 'older-version-runs':
      return [reason.job]
    case 'superseded':
      return reason.by === null ? [] : [reason.by]
    default:
      return []
  }
}
