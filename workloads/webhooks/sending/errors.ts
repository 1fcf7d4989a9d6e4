import { fieldOf, NonRetryable } from '../../../src/errors.ts'

/** A response whose status is not from 200 to 299. */
export class HttpError extends Error {
  readonly status: number

  constructor(status: number, host: string) {
    super(
      `${host} answered with status ${status}${status >= 300 && status < 400 ? '; redirects are not followed' : ''}`,
    )
    this.name = 'HttpError'
    this.status = status
  }
}

/** The URL is not one that a webhook may be sent to. A retry would not change it. */
export class ForbiddenAddress extends NonRetryable {
  constructor(host: string, why: string, advice = `add its origin to 'allow' to permit it`) {
    super(`a webhook to ${host} was refused: ${why}; ${advice}`)
  }
}

/** The connection failed. The message has the host and the code only: others quote the request. */
export class NetworkError extends Error {
  readonly code: string
  /** It was kept from an earlier request, and broke before the first byte of an answer. */
  readonly isStale: boolean

  constructor(host: string, error: unknown, isStale: boolean) {
    const code = codeOf(error)
    super(`the connection to ${host} failed (${code})`)
    this.name = 'NetworkError'
    this.code = code
    this.isStale = isStale
  }
}

export class TimeoutError extends Error {
  constructor(host: string, timeoutMs: number) {
    super(`${host} did not answer within ${timeoutMs} ms`)
    this.name = 'TimeoutError'
  }
}

/** Several addresses of a host make an AggregateError. */
function codeOf(error: unknown): string {
  const several = fieldOf(error, 'errors')
  const code = fieldOf(error, 'code') ?? fieldOf(Array.isArray(several) ? several[0] : undefined, 'code')
  return typeof code === 'string' ? code : String(fieldOf(error, 'name') ?? 'unknown')
}
