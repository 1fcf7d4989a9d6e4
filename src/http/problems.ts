import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { type ErrorCode, isMillraceError } from '../errors.ts'
import type { Log } from '../job/definition.ts'
import { toErrorRecord } from '../job/error-record.ts'
import type { Problem } from './contract/shapes.ts'

export type ProblemBody = z.output<typeof Problem>
export type Issue = NonNullable<ProblemBody['issues']>[number]
export type ProblemStatus = 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 429 | 500 | 501 | 503

/** Codes that only HTTP has, besides those of `src/errors.ts`. */
export type RefusalCode =
  | 'ERR_REQUEST_INVALID'
  | 'ERR_UNAUTHENTICATED'
  | 'ERR_FORBIDDEN'
  | 'ERR_HOST_REFUSED'
  | 'ERR_ORIGIN_REFUSED'
  | 'ERR_ROUTE_UNKNOWN'
  | 'ERR_METHOD_REFUSED'
  | 'ERR_MEDIA_TYPE'
  | 'ERR_BODY_TOO_LARGE'
  | 'ERR_TOO_MANY_STREAMS'
  | 'ERR_TOO_MANY_LOGINS'
  | 'ERR_NO_TOKENS'

/** A request that was refused before anything was done. */
export class HttpError extends Error {
  readonly status: ProblemStatus
  readonly code: RefusalCode
  readonly issues: readonly Issue[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: ProblemStatus,
    code: RefusalCode,
    message: string,
    more: { readonly issues?: readonly Issue[]; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.issues = more.issues ?? []
    this.headers = more.headers ?? {}
  }
}

/** The HTTP status of an error code. Any other code is 500. */
const STATUS: Readonly<Partial<Record<ErrorCode, ProblemStatus>>> = {
  ERR_PAYLOAD_INVALID: 400,
  ERR_PAYLOAD_NOT_JSON: 400,
  ERR_PAYLOAD_VERSION: 400,
  ERR_PAYLOAD_TOO_LARGE: 413,
  ERR_OPTION_INVALID: 400,
  ERR_TYPE_UNKNOWN: 404,
  ERR_JOB_UNKNOWN: 404,
  ERR_RECORD_UNKNOWN: 404,
  ERR_SCHEDULE_UNKNOWN: 404,
  ERR_SCHEDULE_UNREADABLE: 409,
  ERR_JOB_DUPLICATE: 409,
  ERR_STATE_TRANSITION: 409,
  ERR_DESK_REFUSED: 409,
  ERR_UNSUPPORTED: 501,
  ERR_CLOSED: 503,
  ERR_WAIT_TIMEOUT: 503,
  ERR_STORAGE_OPEN: 503,
  ERR_STORAGE_BUSY: 503,
  ERR_STORAGE_FULL: 503,
  ERR_STORAGE_READONLY: 503,
  ERR_STORAGE_FAILED: 503,
}

export interface Answered {
  readonly status: ProblemStatus
  readonly body: ProblemBody
  readonly headers: Readonly<Record<string, string>>
}

/** Any error as a response. An unexpected one is logged under an id, and the response names only the id. */
export function toProblem(error: unknown, log: Log): Answered {
  if (error instanceof HttpError) {
    const { status, code, message, issues, headers } = error
    return { status, body: { code, message, ...(issues.length > 0 && { issues: [...issues] }) }, headers }
  }
  const status = isMillraceError(error) ? STATUS[error.code] : undefined
  if (isMillraceError(error) && status !== undefined) {
    return { status, body: { code: error.code, message: error.message }, headers: {} }
  }
  const id = randomUUID()
  const { name, code, message, stack } = toErrorRecord(error)
  log.error('A request failed', { error_id: id, error_name: name, error_code: code, error: message, stack })
  const text = `internal error; see ${id} in the log`
  return { status: 500, body: { code: 'ERR_INTERNAL', message: text }, headers: {} }
}

export function problemResponse({ status, body, headers }: Answered): Response {
  return Response.json(body, { status, headers })
}
