import { createHash } from 'node:crypto'
import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { type Backoff, checkBackoff, checkBackoffNames } from './backoff.ts'
import type { Predecessors, StoredOptions, Tenant } from './job.ts'
import { checkKeep, type RemoveOption } from './keep.ts'
import type { OptionNames } from './known-options.ts'
import { checkTags } from './tags.ts'

/** A key whose newest job wins. `seq` orders versions that may arrive out of order. */
export type Latest = string | { readonly key: string; readonly seq: number }

/** A job by its id, or by the receipt that `enqueue` returned. */
export type JobRef = string | { readonly id: string }

/** The options of one `enqueue`. Each one that is left out comes from the definition. */
export interface EnqueueOptions {
  /** One live job per key: a second enqueue returns the id of the first and the status `duplicate`. */
  readonly key?: string
  /** The newest job of the key replaces a waiting older one and waits for a running one. */
  readonly latest?: Latest
  /** What the job is called within its type, for types with `byName` and for BullMQ's programs. Default: the type. */
  readonly name?: string
  /** 1 (first) to 10 (last). Default: 5. */
  readonly priority?: number
  readonly delay?: Duration
  /** The time to run at, instead of a delay. */
  readonly at?: Date
  /** Starts in total, the first included. */
  readonly attempts?: number
  readonly backoff?: Backoff
  readonly timeout?: Duration
  readonly tenant?: Tenant
  /** What the job can be found by: at most 10 tags of up to 64 characters. */
  readonly tags?: readonly string[]
  /** True: the job is removed when it completes. A number: once that many newer ones of its type have completed. */
  readonly removeOnComplete?: RemoveOption
  /** The same for dead letters. Each removal leaves an audit entry. Refused for critical types. */
  readonly removeOnFail?: RemoveOption
  /** Jobs that must complete first. The handler receives their results. */
  readonly after?: JobRef | readonly JobRef[]
  /** What happens when one of `after` becomes a dead letter. Default: `wait` for its replay. */
  readonly ifDead?: Predecessors['ifDead']
}

export const ENQUEUE_NAMES: OptionNames<EnqueueOptions> = {
  key: true,
  latest: true,
  name: true,
  priority: true,
  delay: true,
  at: true,
  attempts: true,
  backoff: true,
  timeout: true,
  tenant: true,
  tags: true,
  removeOnComplete: true,
  removeOnFail: true,
  after: true,
  ifDead: true,
}

export const PRIORITY_DEFAULT = 5
export const ATTEMPTS_DEFAULT = 3
export const ATTEMPTS_MAX = 10_000
export const TIMEOUT_DEFAULT_MS = 300_000
export const LEASE_DEFAULT_MS = 60_000
export const PAYLOAD_BYTES_MAX_DEFAULT = 1_048_576
export const KEY_LENGTH_MAX = 512
/** ISO text sorts as time only up to the year 9999. */
const RUN_AT_MS_MAX = Date.UTC(9999, 11, 31)

const TYPE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

export function checkType(type: string): void {
  if (typeof type !== 'string' || !TYPE_PATTERN.test(type)) {
    throw new OptionError(
      `'type' is '${type}'; use 1 to 128 letters, digits, '.', '_', ':' or '-', a letter or digit first`,
    )
  }
  // Counts are records keyed by type: 'constructor' would be found in an empty one.
  if (type in {}) throw new OptionError(`'type' is '${type}', which every JavaScript object has; choose another name`)
}

export function checkPriority(priority: number): number {
  if (Number.isInteger(priority) && priority >= 1 && priority <= 10) return priority
  throw new OptionError(`'priority' is ${priority}; give a whole number from 1 (first) to 10 (last)`)
}

export function checkAttempts(attempts: number): number {
  if (Number.isInteger(attempts) && attempts >= 1 && attempts <= ATTEMPTS_MAX) return attempts
  throw new OptionError(`'attempts' is ${attempts}; give a whole number from 1 to ${ATTEMPTS_MAX} (starts in total)`)
}

export function checkKey(key: string, name: 'key' | 'latest'): string {
  if (isShortText(key)) return key
  throw new OptionError(`'${name}' must be 1 to ${KEY_LENGTH_MAX} printable characters`)
}

/** What a job is called within its type. */
export function checkName(name: string): string {
  if (isShortText(name)) return name
  throw new OptionError(`'name' must be 1 to ${KEY_LENGTH_MAX} printable characters`)
}

/**
 * Control characters would make two keys look alike in listings. Halves of surrogate pairs would make them equal: all are
 * stored as the same replacement character.
 */
function isShortText(text: unknown): text is string {
  if (typeof text !== 'string' || text.length < 1 || text.length > KEY_LENGTH_MAX) return false
  return text.isWellFormed() && !/\p{Cc}/u.test(text)
}

export function checkTenant(tenant: Tenant | null): Tenant {
  const orgId = tenant?.orgId
  const workspaceId = tenant?.workspaceId
  if (isShortText(orgId) && workspaceId === undefined) return { orgId }
  if (isShortText(orgId) && isShortText(workspaceId)) return { orgId, workspaceId }
  throw new OptionError(
    `'tenant' needs an 'orgId' and may have a 'workspaceId', each 1 to ${KEY_LENGTH_MAX} printable characters`,
  )
}

/** A delay or an absolute time, not both: they are measured on different clocks. */
export function checkDue(options: EnqueueOptions, nowMs: number): { delayMs: number; runAtMs: number | null } {
  if (options.delay !== undefined && options.at !== undefined) {
    throw new OptionError(`'delay' and 'at' contradict each other; give one of them`)
  }
  if (options.at !== undefined) {
    const runAtMs = options.at instanceof Date ? options.at.getTime() : Number.NaN
    if (Number.isFinite(runAtMs) && runAtMs >= 0 && runAtMs <= RUN_AT_MS_MAX) return { delayMs: 0, runAtMs }
    throw new OptionError(`'at' is not a date between 1970 and 9999`)
  }
  const delayMs = parseDurationMs(options.delay ?? 0, 'delay')
  if (nowMs + delayMs > RUN_AT_MS_MAX) throw new OptionError(`'delay' reaches beyond the year 9999`)
  return { delayMs, runAtMs: null }
}

export function checkTimeoutMs(timeout: Duration): number {
  const timeoutMs = parseDurationMs(timeout, 'timeout')
  if (timeoutMs > 0) return timeoutMs
  throw new OptionError(`'timeout' is 0; give a duration above 0`)
}

/** A shorter lease would run out between two ticks of a busy process. */
const LEASE_MS_MIN = 100

export function checkLeaseMs(lease: Duration): number {
  const leaseMs = parseDurationMs(lease, 'lease')
  if (leaseMs >= LEASE_MS_MIN) return leaseMs
  throw new OptionError(`'lease' is ${leaseMs} ms; give at least ${LEASE_MS_MIN} ms`)
}

export function checkLimit(
  limit: { readonly max: number; readonly per: Duration } | undefined,
): { max: number; perMs: number } | null {
  if (limit === undefined) return null
  const perMs = parseDurationMs(limit.per, 'limit.per')
  if (Number.isInteger(limit.max) && limit.max >= 1 && perMs > 0) return { max: limit.max, perMs }
  throw new OptionError(`'limit' needs a whole 'max' from 1 and a 'per' above 0, such as { max: 10, per: '1s' }`)
}

/** The overrides that the worker needs, stored with the job. */
export function storedOptions(options: EnqueueOptions): StoredOptions | null {
  if (options.backoff !== undefined) {
    checkBackoffNames(options.backoff)
    checkBackoff(options.backoff)
  }
  const timeoutMs = options.timeout === undefined ? undefined : checkTimeoutMs(options.timeout)
  const { name, removeOnComplete, removeOnFail } = options
  const tags = options.tags === undefined ? [] : checkTags(options.tags)
  const stored: StoredOptions = {
    ...(name !== undefined && { name: checkName(name) }),
    ...(options.backoff && { backoff: options.backoff }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(removeOnComplete !== undefined && { keepCompleted: checkKeep(removeOnComplete, 'removeOnComplete') }),
    ...(removeOnFail !== undefined && { keepDead: checkKeep(removeOnFail, 'removeOnFail') }),
    ...(tags.length > 0 && { tags }),
  }
  return Object.keys(stored).length === 0 ? null : stored
}

/** 64 bits: enough against accidental collisions, short enough to read. */
const HASH_DIGITS = 16

/**
 * An idempotency key for content that must not appear in the key itself, such as user input or personal data. The same
 * content gives the same key. A nonce gives another key, for an intended re-run.
 *
 * @example
 * contentKey('sanitize', conversationId)            // 'sanitize-9f86d081884c7d65'
 * contentKey('sanitize', conversationId, 'again')   // another key
 */
export function contentKey(prefix: string, content: string, nonce?: string): string {
  const subject = nonce === undefined ? content : `${content}:${nonce}`
  const digest = createHash('sha256').update(subject).digest('hex').slice(0, HASH_DIGITS)
  return checkKey(`${prefix}-${digest}`, 'key')
}
