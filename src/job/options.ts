import { createHash } from 'node:crypto'
import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { type Backoff, checkBackoff, checkBackoffNames } from './backoff.ts'
import type { Predecessors, StoredOptions, Tenant } from './job.ts'
import { checkKeep, type RemoveOption } from './keep.ts'
import type { OptionNames } from './known-options.ts'

/** A key whose newest job wins; `seq` orders versions when arrival order is not their order. */
export type Latest = string | { readonly key: string; readonly seq: number }

/** A job by its id, or by the receipt that `enqueue` returned. */
export type JobRef = string | { readonly id: string }

/** What one `enqueue` may say. What it leaves out comes from the definition, field by field (A53). */
export interface EnqueueOptions {
  /** One live job per key: a second enqueue returns the first one's id and `duplicate` (I7). */
  readonly key?: string
  /** The newest job of the key replaces a waiting older one and waits for a running older one (I4). */
  readonly latest?: Latest
  /** 1 (first) to 10 (last); 5 if nothing says otherwise. */
  readonly priority?: number
  readonly delay?: Duration
  /** An absolute time instead of a delay. */
  readonly at?: Date
  /** How many starts at most, the first included. */
  readonly attempts?: number
  readonly backoff?: Backoff
  readonly timeout?: Duration
  readonly tenant?: Tenant
  /** True: this job is removed as it completes. A number: it is removed once so many newer ones of its type have completed. */
  readonly removeOnComplete?: RemoveOption
  /** The same for dead letters; each that goes leaves an entry in the audit. Refused for critical types. */
  readonly removeOnFail?: RemoveOption
  /** Jobs that come first: this one starts when all of them are completed, and its handler is given their results. */
  readonly after?: JobRef | readonly JobRef[]
  /** What happens when one of `after` becomes a dead letter; `wait` for its replay unless told. */
  readonly ifDead?: Predecessors['ifDead']
}

export const ENQUEUE_NAMES: OptionNames<EnqueueOptions> = {
  key: true,
  latest: true,
  priority: true,
  delay: true,
  at: true,
  attempts: true,
  backoff: true,
  timeout: true,
  tenant: true,
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

/**
 * Control characters would make two keys look alike in every log and listing; halves of surrogate pairs would make
 * them equal, because all become the same replacement character when they are stored.
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

/** Either a relative delay or an absolute time, never both: the two are measured on different clocks. */
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

export function checkConcurrency(concurrency: number | undefined): number | null {
  if (concurrency === undefined) return null
  if (Number.isInteger(concurrency) && concurrency >= 1) return concurrency
  throw new OptionError(`'concurrency' is ${concurrency}; give a whole number from 1`)
}

export function checkLimit(
  limit: { readonly max: number; readonly per: Duration } | undefined,
): { max: number; perMs: number } | null {
  if (limit === undefined) return null
  const perMs = parseDurationMs(limit.per, 'limit.per')
  if (Number.isInteger(limit.max) && limit.max >= 1 && perMs > 0) return { max: limit.max, perMs }
  throw new OptionError(`'limit' needs a whole 'max' from 1 and a 'per' above 0, such as { max: 10, per: '1s' }`)
}

/** The overrides that travel with the job because the worker, not the client, needs them. */
export function storedOptions(options: EnqueueOptions): StoredOptions | null {
  if (options.backoff !== undefined) {
    checkBackoffNames(options.backoff)
    checkBackoff(options.backoff)
  }
  const timeoutMs = options.timeout === undefined ? undefined : checkTimeoutMs(options.timeout)
  const { removeOnComplete, removeOnFail } = options
  const stored: StoredOptions = {
    ...(options.backoff && { backoff: options.backoff }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(removeOnComplete !== undefined && { keepCompleted: checkKeep(removeOnComplete, 'removeOnComplete') }),
    ...(removeOnFail !== undefined && { keepDead: checkKeep(removeOnFail, 'removeOnFail') }),
  }
  return Object.keys(stored).length === 0 ? null : stored
}

/** Hex digits of the hash that a key carries: 64 bits, ample against accidents, short enough to read. */
const HASH_DIGITS = 16

/**
 * An idempotency key for content that must not stand in the key itself (text from outside, personal data).
 * The same content gives the same key; a nonce makes an intended re-run a different job.
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
