/** What every act by hand has: a payload that is one, and an entry in the audit. */
import type { NotedAction } from '../../engine/dead-letters.ts'
import { errorText } from '../../observe/error-text.ts'
import type { Caller } from '../auth.ts'
import type { Parts } from '../parts.ts'
import { Refused } from '../problems.ts'
import { hasPlaceholder, REDACTED } from '../redaction.ts'
import { given } from './shown.ts'

interface Act {
  readonly action: NotedAction
  readonly reason: string | undefined
  readonly jobId?: string | undefined
  readonly type?: string | undefined
  readonly subject?: string | undefined
  readonly before?: Readonly<Record<string, unknown>>
  readonly after?: Readonly<Record<string, unknown>>
}

/**
 * Writes an act that was carried out into the audit, or into the log where the engine has none. The act is done: an audit
 * that cannot be written is told there too, and does not turn the answer into a failure that invites to repeat it.
 */
export async function noted({ mill, log }: Parts, { who }: Caller, act: Act): Promise<void> {
  const { reason = act.action, ...facts } = act
  const line = { who, action: act.action, job_id: act.jobId, job_type: act.type, subject: act.subject }
  if (mill.engine.deadLetters === undefined) return log.info('An act by hand', line)
  try {
    await mill.note({ ...given(facts), who, reason })
  } catch (error) {
    log.error('An act by hand was carried out and could not be audited', { ...line, error: errorText(error) })
  }
}

/** What is shown in the place of a secret must not become its value. */
export function refusePlaceholder(payload: unknown): void {
  if (!hasPlaceholder(payload)) return
  throw new Refused(
    400,
    'ERR_REQUEST_INVALID',
    `the payload has '${REDACTED}' where a value belongs; put the value there`,
    { issues: [{ path: 'body.payload', message: `a value is '${REDACTED}'` }] },
  )
}
