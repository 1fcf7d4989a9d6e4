import type { OperatorAction } from '../../engine/dead-letters.ts'
import { errorText } from '../../job/error-record.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { Caller } from '../auth.ts'
import type { AdminContext } from '../context.ts'

interface ManualAction {
  readonly action: OperatorAction
  readonly reason: string | undefined
  readonly jobId?: string | undefined
  readonly type?: string | undefined
  readonly subject?: string | undefined
  readonly before?: Readonly<Record<string, unknown>>
  readonly after?: Readonly<Record<string, unknown>>
}

/**
 * Records a manual action in the audit, or in the log when the engine has no audit. The action is already done: a failure
 * to record it is logged, and must not become an error that invites the caller to repeat it.
 */
export async function audited(
  { mill, log }: Pick<AdminContext, 'mill' | 'log'>,
  { who }: Caller,
  manual: ManualAction,
): Promise<void> {
  const { reason = manual.action, ...facts } = manual
  const line = { who, action: manual.action, job_id: manual.jobId, job_type: manual.type, subject: manual.subject }
  if (mill.engine.deadLetters === undefined) return log.info('A manual action', line)
  try {
    await mill.note({ ...omitUndefined(facts), who, reason })
  } catch (error) {
    log.error('A manual action could not be audited', { ...line, error: errorText(error) })
  }
}
