/** What keeps a partition from being read on, though it has records and a worker. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { ok, plural, warning } from '../../../engine/findings.ts'
import { nameOf } from '../holding.ts'
import { decodeProgress } from '../progress.ts'
import { TRIALS_MAX } from '../watermark.ts'
import type { PartitionView, Survey } from './survey.ts'

/** Records in retry, more than a partition takes on at a time: those behind them are not started. */
export function judgeRetries({ jobs }: Survey): readonly Finding[] {
  const places = jobs.flatMap(({ partitions }) => partitions)
  const full = places.map((place) => ({ place, count: retriesOf(place) })).filter(({ count }) => count >= TRIALS_MAX)
  if (full.length === 0) return [ok('retries', `no partition has ${TRIALS_MAX} records that wait for a retry`)]
  return full.map(({ place, count }) =>
    warning(
      'retries',
      `${plural(count, 'record')} of ${nameOf(place)} wait for a retry; no other record of the partition is started until one of them is settled`,
      'See the log for why they fail. Where the payload is of a newer version, deploy the worker that knows it.',
    ),
  )
}

function retriesOf({ committed }: PartitionView): number {
  const { trials } = decodeProgress(Number(committed?.offset ?? 0n), committed?.metadata ?? null)
  return [...trials].filter(([, { starts, dueMs }]) => starts > 1 || dueMs > 0).length
}
