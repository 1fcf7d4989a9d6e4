import { admitRate, limitStoreOf } from '../engine/capability-checks.ts'
import type { Actor } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import { type LimitOverride, type LimitsChange, limitsOf, type TypeLimits } from '../engine/limits.ts'
import { OptionError } from '../errors.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { checkLimit, checkType } from '../job/options.ts'
import { checkConcurrencyMax } from '../job/slots.ts'
import type { Duration } from '../time/duration.ts'
import { checkActor, isAudited, writeNote } from './audit.ts'

/** New limits of a type. What is left out stays as it is; null: no limit. */
export interface LimitsSpec {
  /** The most jobs of the type at once in one worker, or over all of them (of each tenant) where the definition's is shared. */
  readonly concurrency?: number | null
  /** At most `max` starts in any `per`, over all workers. */
  readonly limit?: { readonly max: number; readonly per: Duration } | null
}

const SPEC_NAMES: OptionNames<LimitsSpec> = { concurrency: true, limit: true }
const RATE_NAMES: OptionNames<NonNullable<LimitsSpec['limit']>> = { max: true, per: true }

/**
 * Limits of types that are changed while workers run, as `mill.limits`. They hold instead of those of the definition in
 * every worker of every process, within two seconds and after restarts, until they are reset. The audit records each change.
 *
 * @example
 * await mill.limits.set('send-email', { limit: { max: 10, per: '1s' } }, { who: 'ann', reason: 'the provider slows us down' })
 */
export class Limits {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** Those that were changed and not reset, by type. */
  async list(): Promise<readonly LimitOverride[]> {
    return limitStoreOf(this.#engine).list()
  }

  /** Answers what was set before, and what is set now. */
  async set(type: string, spec: LimitsSpec, by: Partial<Actor> = {}): Promise<LimitsChange> {
    checkActor(by, 'limits.set')
    checkType(type)
    const limits = checkSpec(spec)
    const store = limitStoreOf(this.#engine)
    if (limits.limit !== undefined && limits.limit !== null) admitRate(this.#engine, type)
    const act = { who: by.who ?? 'api', reason: by.reason ?? 'limits changed' }
    const change = await store.set(type, limits, act)
    await this.#note({
      ...act,
      action: 'limits-change',
      type,
      before: { ...change.before },
      after: { ...change.after },
    })
    return change
  }

  /** The definition's limits hold again. False if none were set. */
  async reset(type: string, by: Partial<Actor> = {}): Promise<boolean> {
    checkActor(by, 'limits.reset')
    const before = await limitStoreOf(this.#engine).reset(type)
    if (before === null) return false
    const act = { who: by.who ?? 'api', reason: by.reason ?? 'limits reset' }
    await this.#note({ ...act, action: 'limits-reset', type, before: { ...limitsOf(before) } })
    return true
  }

  async #note(note: Parameters<typeof writeNote>[1]): Promise<void> {
    if (isAudited(this.#engine)) await writeNote(this.#engine, note)
  }
}

function checkSpec(spec: LimitsSpec): TypeLimits {
  refuseUnknown(spec, SPEC_NAMES, 'limits.set')
  const { concurrency, limit } = spec
  if (concurrency === undefined && limit === undefined) {
    throw new OptionError(`nothing is to be changed; give 'concurrency', 'limit' or both`)
  }
  if (limit !== undefined && limit !== null) refuseUnknown(limit, RATE_NAMES, `'limit'`)
  return {
    ...(concurrency !== undefined && { concurrency: concurrency === null ? null : checkConcurrencyMax(concurrency) }),
    ...(limit !== undefined && { limit: limit === null ? null : checkLimit(limit) }),
  }
}
