import { redact } from '../job/error-record.ts'

/** What a person may read of an error. Some network errors have no text of their own, only a code. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return redact(String(error))
  if (error.message !== '') return redact(error.message)
  const code: unknown = Reflect.get(error, 'code')
  return typeof code === 'string' ? code : error.name
}
