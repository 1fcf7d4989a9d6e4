import { randomUUID } from 'node:crypto'
import { EngineError } from '../errors.ts'
import type { SharedSlots } from '../job/slots.ts'
import { exactDuration, formatDuration } from '../time/duration.ts'
import type { Actor } from './dead-letters.ts'
import type { Counts, Engine, Finding } from './engine.ts'
import { Pauses, type Told } from './pauses.ts'
import { bodyFields, type Records } from './records.ts'

/** At most `max` starts in any `perMs`, over all workers. */
export interface RateLimit {
  readonly max: number
  readonly perMs: number
}

/** What holds instead of the definition's limits. A field that is left out is the definition's; null: no limit. */
export interface TypeLimits {
  /** The most jobs of the type at once in one worker, or over all of them where the definition's is shared. */
  readonly concurrency?: number | null
  readonly limit?: RateLimit | null
}

/** Limits that an operator has set, until they are reset. */
export interface LimitOverride extends TypeLimits, Actor {
  readonly type: string
  readonly sinceMs: number
}

export interface LimitsChange {
  readonly before: TypeLimits
  readonly after: TypeLimits
}

/** Two operators that change one type at the same moment are a rarity; more tries would hide a store that errs. */
const SAVE_TRIES = 10

/**
 * Limits of types that were changed while workers run. They are kept among the pauses, so a worker hears of them by the
 * look that it takes anyway. No type has a line break, and no worker that is asked to stop has an empty id.
 */
export class LimitStore {
  readonly #records: Records

  constructor(records: Records) {
    this.#records = records
  }

  /** By type. */
  async list(): Promise<readonly LimitOverride[]> {
    return (await new Pauses(this.#records).all()).flatMap((told) => overrideOf(told) ?? [])
  }

  /** What is left out stays as it was set before. */
  async set(type: string, limits: TypeLimits, { who, reason }: Actor): Promise<LimitsChange> {
    for (let tries = 0; tries < SAVE_TRIES; tries += 1) {
      const stored = (await this.#records.list('pause')).find(({ name }) => name === limitName(type))
      const before = stored === undefined ? {} : readLimits(bodyFields(stored.body))
      const after = { ...before, ...limits }
      const body = JSON.stringify({ who, reason, ...after })
      const record = { name: limitName(type), revision: randomUUID(), body }
      if ((await this.#records.save('pause', record, stored?.revision ?? null)) !== null) return { before, after }
    }
    throw new EngineError('ERR_STORAGE_BUSY', `the limits of '${type}' are changed by others all the time; try again`)
  }

  /** Null if nothing was set. */
  async reset(type: string): Promise<LimitOverride | null> {
    const override = (await this.list()).find((one) => one.type === type) ?? null
    return (await this.#records.remove('pause', [limitName(type)])) > 0 ? override : null
  }
}

/** The name of the record among those of the pauses. */
export function limitName(type: string): string {
  return `\n${type}`
}

/** Whether a record of the pauses is about limits. */
export function isOfLimits(name: string): boolean {
  return name.startsWith('\n')
}

/** Null for a record of the pauses that is about something else. */
export function overrideOf({ type, who, reason, sinceMs, body }: Told): LimitOverride | null {
  if (!isOfLimits(type)) return null
  return { type: type.slice(1), ...readLimits(bodyFields(body)), who, reason, sinceMs }
}

/** Those of an override alone. */
export function limitsOf({ concurrency, limit }: TypeLimits): TypeLimits {
  return { ...(concurrency !== undefined && { concurrency }), ...(limit !== undefined && { limit }) }
}

/** The limits that a definition has. */
export interface DefinedLimits {
  /** In one worker; `slots`: over all of them. */
  readonly concurrency: number | null
  readonly slots: SharedSlots | null
  readonly limit: RateLimit | null
}

/** A concurrency that is set is of what the definition's is: of one worker, or the number over all of them. */
export function limitsNow(defined: DefinedLimits, set: TypeLimits): DefinedLimits {
  const limit = set.limit === undefined ? defined.limit : set.limit
  const { concurrency, slots } = defined
  if (set.concurrency === undefined) return { concurrency, limit, slots }
  if (slots === null) return { concurrency: set.concurrency, limit, slots }
  return { concurrency, limit, slots: set.concurrency === null ? null : { ...slots, max: set.concurrency } }
}

/** What a definition says, such as "concurrency 5 over all workers, no rate limit". */
export function definedText({ concurrency, slots, limit }: DefinedLimits): string {
  const at = limitsText({ concurrency: slots?.max ?? concurrency })
  const over = slots === null ? '' : ` over all workers${slots.by === null ? '' : ', for each tenant'}`
  return `${at}${over}, ${limitsText({ limit })}`
}

/** What holds now, such as "concurrency 5, at most 10 starts in 1s". */
export function limitsText({ concurrency, limit }: TypeLimits): string {
  const parts = [
    concurrency === undefined
      ? []
      : [concurrency === null ? 'no concurrency of its own' : `concurrency ${concurrency}`],
    limit === undefined
      ? []
      : [limit === null ? 'no rate limit' : `at most ${limit.max} starts in ${exactDuration(limit.perMs)}`],
  ]
  return parts.flat().join(', ')
}

/** What is no limit is left out: the definition's is the safer one. */
function readLimits({ concurrency, limit }: Readonly<Partial<Record<string, unknown>>>): TypeLimits {
  return {
    ...((concurrency === null || isWhole(concurrency)) && { concurrency }),
    ...((limit === null || isRate(limit)) && { limit }),
  }
}

function isWhole(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1
}

function isRate(value: unknown): value is RateLimit {
  if (typeof value !== 'object' || value === null || !('max' in value) || !('perMs' in value)) return false
  return isWhole(value.max) && typeof value.perMs === 'number' && value.perMs > 0
}

/** Undefined where the engine keeps no records. */
export function limitsIn({ records }: Pick<Engine, 'records'>): LimitStore | undefined {
  return records === undefined ? undefined : new LimitStore(records)
}

/** A limit that was set for a bad hour is easily forgotten, so one for which jobs wait is a warning. */
export function judgeLimits(overrides: readonly LimitOverride[], counts: Counts, nowMs: number): readonly Finding[] {
  return overrides.map((override) => {
    const { type, who, reason, sinceMs } = override
    const ready = counts[type]?.ready ?? 0
    const since = formatDuration(Math.max(0, nowMs - sinceMs))
    const detail = `'${type}': ${limitsText(override)}, set by ${who} ${since} ago: ${reason}; ${ready} ready jobs wait`
    const advice = `if the definition's limits can hold again: millrace limits reset ${type}`
    return { severity: ready > 0 ? 'warning' : 'ok', subject: 'limits', detail, advice: ready > 0 ? advice : null }
  })
}
