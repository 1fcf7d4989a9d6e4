/**
 * Every error that a caller can get. The `code` is stable: match on it with `isMillraceError`, never on the message.
 * A message says what is wrong and what to do next.
 */

export const ERROR_CODES = [
  'ERR_PAYLOAD_INVALID',
  'ERR_PAYLOAD_TOO_LARGE',
  'ERR_PAYLOAD_NOT_JSON',
  'ERR_PAYLOAD_VERSION',
  'ERR_RESULT_NOT_JSON',
  'ERR_RESULT_TOO_LARGE',
  'ERR_OPTION_INVALID',
  'ERR_TYPE_UNKNOWN',
  'ERR_JOB_UNKNOWN',
  'ERR_RECORD_UNKNOWN',
  'ERR_JOB_DEAD',
  'ERR_JOB_ENDED',
  'ERR_JOB_TIMEOUT',
  'ERR_JOB_DUPLICATE',
  'ERR_PREDECESSOR_DEAD',
  'ERR_SCHEDULE_UNKNOWN',
  'ERR_SCHEDULE_UNREADABLE',
  'ERR_HANDLER_MISSING',
  'ERR_LEASE_LOST',
  'ERR_LEASE_EXPIRED',
  'ERR_STOPPING',
  'ERR_WAIT_TIMEOUT',
  'ERR_ENGINE_URL',
  'ERR_MODULE_MISSING',
  'ERR_MODULE_INVALID',
  'ERR_UNSUPPORTED',
  'ERR_CLOSED',
  'ERR_STATE_TRANSITION',
  'ERR_DESK_REFUSED',
  'ERR_STORAGE_OPEN',
  'ERR_STORAGE_READONLY',
  'ERR_STORAGE_FULL',
  'ERR_STORAGE_NOT_A_DATABASE',
  'ERR_STORAGE_REPLACED',
  'ERR_STORAGE_BUSY',
  'ERR_STORAGE_FAILED',
  'ERR_STORAGE_REFUSED',
  'ERR_SCHEMA_NEWER',
  'ERR_SCHEMA_MISSING',
  'ERR_NODE_VERSION',
  'ERR_SQLITE_VERSION',
  'ERR_CLOCK_STEPPED',
  'ERR_UNHEALTHY',
  'ERR_NON_RETRYABLE',
  'ERR_RETRY_AFTER',
  'ERR_OFFLINE',
  'ERR_POSTPONED',
  'ERR_THROWN',
  'ERR_WEBHOOK_UNVERIFIED',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

export class MillraceError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

const OUR_CODES: ReadonlySet<unknown> = new Set(ERROR_CODES)

/** A field of anything that was thrown. Undefined if reading it throws, as with a getter or a revoked Proxy. */
export function fieldOf(thrown: unknown, name: string): unknown {
  try {
    return (typeof thrown === 'object' && thrown !== null) || typeof thrown === 'function'
      ? Reflect.get(thrown, name)
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether this is a Millrace error with one of these codes; without codes, any Millrace error. Errors are recognised by code
 * and not by class, because a program may contain two copies of this package.
 *
 * @example
 * if (isMillraceError(error, 'ERR_PAYLOAD_INVALID')) return reply.status(400)
 */
export function isMillraceError(thrown: unknown, ...codes: readonly ErrorCode[]): thrown is MillraceError {
  const code = fieldOf(thrown, 'code')
  if (!OUR_CODES.has(code) || typeof fieldOf(thrown, 'message') !== 'string') return false
  return codes.length === 0 || codes.some((one) => one === code)
}

/** `instanceof Error` for anything that was thrown: a revoked Proxy makes the operator itself throw. */
export function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error
  } catch {
    return false
  }
}

/** The message of anything that was thrown. Never throws. Redact it before it is stored. */
export function messageOf(thrown: unknown): string {
  try {
    return isError(thrown) ? String(thrown.message) : String(thrown)
  } catch {
    return `a value of type ${typeof thrown} that cannot be read`
  }
}

/** The payload was refused, before anything was stored or before the handler ran. */
export class PayloadError extends MillraceError {}

/** The handler's result cannot be stored. The work itself was done. */
export class ResultError extends MillraceError {}

/** An option is unknown, out of range, malformed or contradicts another one. Nothing was stored. */
export class OptionError extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('ERR_OPTION_INVALID', message, options)
  }
}

export class UnknownTypeError extends MillraceError {
  constructor(type: string, known: readonly string[]) {
    const list = known.length === 0 ? 'none' : known.join(', ')
    super('ERR_TYPE_UNKNOWN', `no job of type '${type}' is known here (known: ${list}); pass its definition`)
  }
}

export class UnknownJobError extends MillraceError {
  constructor(id: string) {
    super(
      'ERR_JOB_UNKNOWN',
      `no job has the id '${id}'; it was never enqueued here, or it was removed by retention, removeOnComplete or removeOnFail`,
    )
  }
}

export class UnknownScheduleError extends MillraceError {
  constructor(name: string) {
    super('ERR_SCHEDULE_UNKNOWN', `Unknown scheduled job: ${name}`)
  }
}

/** The engine cannot do this. Nothing is silently clamped, dropped or emulated. */
export class UnsupportedError extends MillraceError {
  readonly job: string | null
  readonly engine: string
  readonly limit: string

  constructor(refusal: { readonly job?: string; readonly engine: string; readonly limit: string }) {
    const subject = refusal.job === undefined ? '' : `job '${refusal.job}': `
    super('ERR_UNSUPPORTED', `${subject}the ${refusal.engine} engine ${refusal.limit}`)
    this.job = refusal.job ?? null
    this.engine = refusal.engine
    this.limit = refusal.limit
  }
}

/** An engine could not be reached, opened or understood. */
export class EngineError extends MillraceError {}

/** The job will never have a result: it is a dead letter, or was cancelled, superseded or discarded. */
export class JobEndedError extends MillraceError {}

/** Recorded on a job that died because a job that it waited for will not complete. */
export class PredecessorError extends MillraceError {
  constructor(one: { readonly id: string; readonly type: string | null; readonly state: string }) {
    const name = one.type === null ? one.id : `'${one.type}' ${one.id}`
    const [fate, advice] =
      one.state === 'dead'
        ? ['is a dead letter', 'replay that one first, then this']
        : [`was ${one.state}`, `enqueue it again, and this one after it`]
    super('ERR_PREDECESSOR_DEAD', `it comes after ${name}, which ${fate}; ${advice}`)
  }
}

export class JobTimeoutError extends MillraceError {
  constructor(type: string, timeoutMs: number) {
    super(
      'ERR_JOB_TIMEOUT',
      `job '${type}' ran longer than its timeout of ${timeoutMs} ms; raise 'timeout', or stop when 'signal' aborts`,
    )
  }
}

/** The reason of a handler's aborted signal when its lease is lost. Its outcome will not be recorded. */
export class LeaseLostError extends MillraceError {
  readonly reason: 'expired' | 'revoked' | 'superseded' | 'cancelled'

  constructor(id: string, reason: 'expired' | 'revoked' | 'superseded' | 'cancelled') {
    super('ERR_LEASE_LOST', `the lease of job ${id} is lost (${reason}); its outcome will not be recorded`)
    this.reason = reason
  }
}

/** The reason of a handler's aborted signal when the worker stops and `drain` is over. */
export class StoppingError extends MillraceError {
  constructor() {
    super('ERR_STOPPING', 'the worker is stopping; the job goes back to the queue without using an attempt')
  }
}

export class WaitTimeoutError extends MillraceError {
  constructor(what: string, waitMs: number, options: ErrorOptions = {}) {
    super('ERR_WAIT_TIMEOUT', `${what} did not happen within ${waitMs} ms`, options)
  }
}

export class ClosedError extends MillraceError {
  constructor(what: string) {
    super('ERR_CLOSED', `${what} is closed; open a new one`)
  }
}

/** Throw it in a handler when retrying cannot help: the job becomes a dead letter at once. */
export class NonRetryable extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('ERR_NON_RETRYABLE', message, options)
  }
}

/** Throw it in a handler to retry after this time instead of the backoff. It uses an attempt. */
export class RetryAfter extends MillraceError {
  readonly delay: string | number

  constructor(delay: string | number, message = 'the handler asked to be retried later', options?: ErrorOptions) {
    super('ERR_RETRY_AFTER', message, options)
    this.delay = delay
  }
}

/** Throw it in a handler when the network is down: the job is deferred and no attempt is used. */
export class Offline extends MillraceError {
  readonly delay: string | number

  constructor(message = 'offline', options?: ErrorOptions & { readonly delay?: string | number }) {
    super('ERR_OFFLINE', message, options)
    this.delay = options?.delay ?? 60_000
  }
}

/**
 * Throw it in a handler that waits for something, such as a confirmation: the job is given back for this long and no
 * attempt is used. The reason is part of the job's history.
 */
export class Postpone extends MillraceError {
  readonly delay: string | number

  constructor(delay: string | number, reason = 'the handler is waiting', options?: ErrorOptions) {
    super('ERR_POSTPONED', reason, options)
    this.delay = delay
  }
}
