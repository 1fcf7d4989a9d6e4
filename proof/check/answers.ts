/** What answers say. */
import type { Answer, AskedJob, Entry, Stamp } from '../history/entry.ts'
import type { Ask, Asked, Done } from './evidence.ts'

const ANSWERS: ReadonlySet<string> = new Set([
  'enqueued',
  'consuming',
  'claimed',
  'settled',
  'reported',
  'left',
  'cancelled',
  'desk-done',
  'saved',
  'removed',
  'swept',
  'closed',
  'failed',
] satisfies Answer['what'][])

export function isAnswer(
  entry: Extract<Entry, { readonly call: number }>,
): entry is Stamp & Answer & { readonly call: number } {
  return ANSWERS.has(entry.what)
}

export function doneOf({ answer }: Asked, isDone: (answer: Answer) => boolean): Done {
  if (answer === null) return 'unknown'
  if (answer.what === 'failed') return answer.isRefusal ? 'no' : 'unknown'
  return isDone(answer) ? 'yes' : 'no'
}

export function receiptOf(
  job: AskedJob,
  from: Ask['from'],
  answered: Stamp | (Stamp & Answer) | null,
  index: number,
): Pick<Ask, 'status' | 'receiptId'> {
  if (answered === null) return { status: 'unknown', receiptId: null }
  if (from === 'foreign' || !('what' in answered)) return { status: 'enqueued', receiptId: job.id }
  if (answered.what === 'failed') return { status: answered.isRefusal ? 'refused' : 'unknown', receiptId: null }
  if (answered.what !== 'enqueued' && answered.what !== 'saved') return { status: 'unknown', receiptId: null }
  const receipt = answered.receipts?.[index]
  return receipt === undefined
    ? { status: 'refused', receiptId: null }
    : { status: receipt.status, receiptId: receipt.id }
}

export function leaseName({ id, token }: { readonly id: string; readonly token: string }): string {
  return `${id} ${token}`
}

export function strangerName({ type, digest }: { readonly type: string; readonly digest: string }): string {
  return `${type} ${digest}`
}

/** How sure it is that this time stored the job: 0 when it did not. */
export function certainty({ status, receiptId, job }: Ask): number {
  if (status === 'enqueued' || status === 'replaced') return 3
  if (status === 'duplicate') return receiptId === job.id ? 2 : 0
  return status === 'unknown' ? 1 : 0
}
