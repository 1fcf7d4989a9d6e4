import { fieldOf, messageOf } from '../errors.ts'
import { redact } from '../job/error-record.ts'

/** What a person may read of anything that was thrown. It never throws. Some network errors have no text of their own, only a code. */
export function errorText(error: unknown): string {
  const text = messageOf(error)
  if (text !== '') return redact(text)
  const code = fieldOf(error, 'code')
  if (typeof code === 'string') return code
  const name = fieldOf(error, 'name')
  return typeof name === 'string' ? name : 'Error'
}
