/**
 * Every error a caller can meet. The `code` is stable: match on it, never on the message.
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
  'ERR_SQLITE_VERSION',
  'ERR_CLOCK_STEPPED',
  'ERR_UNHEALTHY',
  'ERR_NON_RETRYABLE',
  'ERR_RETRY_AFTER',
  'ERR_OFFLINE',
  'ERR_THROWN',
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

/** A field of anything that was thrown. One that throws when it is read, such as a getter or a revoked Proxy, is not there. */
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
 * Whether it is an error of ours with one of these codes, or with any. It is recognised by its code and not by its class,
 * because a program may hold two copies of this package, and the handler may throw the other one's.
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

/** What an error says, for a log or another error's message. It never throws; redact it before it is stored. */
export function messageOf(thrown: unknown): string {
  try {
    return isError(thrown) ? String(thrown.message) : String(thrown)
  } catch {
    return `something of type ${typeof thrown} that cannot be read`
  }
}

/** The payload was refused before anything was stored, or before the handler ran. */
export class PayloadError extends MillraceError {}

/** The handler returned something that cannot be stored. The work itself was done. */
export class ResultError extends MillraceError {}

/** An option is out of range, malformed or contradicts another one. Nothing was stored. */
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
      `no job has the id '${id}'; it was never enqueued here, or retention has removed it (removeOnComplete and removeOnFail do so as it finishes)`,
    )
  }
}

export class UnknownScheduleError extends MillraceError {
  constructor(name: string) {
    super('ERR_SCHEDULE_UNKNOWN', `Unknown scheduled job: ${name}`)
  }
}

/** What the engine cannot do is refused; it is never clamped, dropped or emulated in silence (I10). */
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

/** The result of a job that will never have one: dead-lettered, cancelled, superseded or discarded. */
export class JobEndedError extends MillraceError {}

/** Recorded on a job that died because one that it came after will not complete. */
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
      `job '${type}' ran longer than its timeout of ${timeoutMs} ms; raise 'timeout' or heed 'signal'`,
    )
  }
}

/** The reason of a handler's aborted signal when its lease is gone: whatever it does now changes nothing (I3). */
export class LeaseLostError extends MillraceError {
  readonly reason: 'expired' | 'revoked' | 'superseded' | 'cancelled'

  constructor(id: string, reason: 'expired' | 'revoked' | 'superseded' | 'cancelled') {
    super('ERR_LEASE_LOST', `the lease of job ${id} is gone (${reason}); its outcome will not be recorded`)
    this.reason = reason
  }
}

/** The reason of a handler's aborted signal when the worker stops and the drain time is over. */
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

/** Thrown by a handler: retrying cannot help, so the job becomes a dead letter at once. */
export class NonRetryable extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('ERR_NON_RETRYABLE', message, options)
  }
}

/** Thrown by a handler: try again after this time, whatever the backoff says. It uses an attempt. */
export class RetryAfter extends MillraceError {
  readonly delay: string | number

  constructor(delay: string | number, message = 'the handler asked to be retried later', options?: ErrorOptions) {
    super('ERR_RETRY_AFTER', message, options)
    this.delay = delay
  }
}

/** Thrown by a handler: the network is away. The job is deferred and no attempt is used. */
export class Offline extends MillraceError {
  readonly delay: string | number

  constructor(message = 'offline', options?: ErrorOptions & { readonly delay?: string | number }) {
    super('ERR_OFFLINE', message, options)
    this.delay = options?.delay ?? 60_000
  }
}
