/** What keeps a partition from being read on, though it has records and a worker. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { decodeProgress } from '../commit-metadata.ts'
import type { KafkaOptions } from '../options.ts'
import { nameOf } from '../record.ts'
import { RETRIES_MAX } from '../watermark.ts'
import { OPEN_MS, type PartitionView, type Survey } from './survey.ts'

/** Records in retry, more than a partition takes on at a time: those behind them are not started. */
export function judgeRetries({ jobs }: Survey): readonly Finding[] {
  const places = jobs.flatMap(({ partitions }) => partitions)
  const full = places.map((place) => ({ place, count: retriesOf(place) })).filter(({ count }) => count >= RETRIES_MAX)
  if (full.length === 0) return [ok('retries', `no partition has ${RETRIES_MAX} records that wait for a retry`)]
  return full.map(({ place, count }) =>
    warning(
      'retries',
      `${plural(count, 'record')} of ${nameOf(place)} wait for a retry; no other record of the partition is started until one of them is settled`,
      'See the log for why they fail. Where the payload is of a newer version, deploy the worker that knows it.',
    ),
  )
}

function retriesOf({ committed }: PartitionView): number {
  const { retryStates } = decodeProgress(Number(committed?.offset ?? 0n), committed?.metadata ?? null)
  return [...retryStates].filter(([, { starts, dueMs }]) => starts > 1 || dueMs > 0).length
}

/** A transaction that nobody ends: what lies behind its first record is not read, whoever wrote it. */
export function judgeTransactions(
  { jobs }: Survey,
  { isolation }: Pick<KafkaOptions, 'isolation'>,
): readonly Finding[] {
  if (isolation === 'read_uncommitted')
    return [ok('transactions', 'records run before their transaction is committed (isolation=read_uncommitted)')]
  const places = jobs.flatMap(({ partitions }) => partitions)
  const held = places.filter(({ stable, end, recent }) => stable < end && stable < recent)
  if (held.length === 0)
    return [ok('transactions', `no partition is held back by a transaction that is open for ${formatAge(OPEN_MS)}`)]
  return held.map((place) =>
    warning(
      'transactions',
      `${plural(Number(place.end - place.stable), 'record')} of ${nameOf(place)} from offset ${place.stable} on wait for the end of a transaction that is open for more than ${formatAge(OPEN_MS)}`,
      'Find its producer with kafka-transactions.sh find-hanging, or describe-producers, and end it there or with abort. isolation=read_uncommitted runs records of open and aborted transactions too.',
    ),
  )
}
