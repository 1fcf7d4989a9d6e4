import { hasPlaceholder, REDACTED } from '../job/redaction.ts'
import { HttpError } from './problems.ts'

/** The placeholder of a secret must not become its value. */
export function refusePlaceholder(payload: unknown): void {
  if (!hasPlaceholder(payload)) return
  throw new HttpError(
    400,
    'ERR_REQUEST_INVALID',
    `the payload has '${REDACTED}' instead of a value; put the value there`,
    { issues: [{ path: 'body.payload', message: `a value is '${REDACTED}'` }] },
  )
}
