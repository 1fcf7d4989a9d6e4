/** Which rule built into a process is about the same fact as which shipped rule of Prometheus. */
import type { Firing } from './recording.ts'
import { textOf } from './stores.ts'

/** Rules of Prometheus without a counterpart are about scraping, about the reaper, or about several processes. */
const COUNTERPARTS: Readonly<Record<string, readonly string[]>> = {
  MillraceEngineDown: ['EngineDown'],
  MillraceNoWorkers: ['NoWorkers'],
  MillraceDeadLetters: ['DeadLetters'],
  MillraceDeadLettersTooMany: ['DeadLettersTooMany'],
  MillraceCriticalDeadLetters: ['CriticalDeadLetters'],
  MillraceQueueDepth: ['queue_depth'],
  MillraceQueueAge: ['JobsWaitTooLong', 'queue_age'],
  MillraceSuccessRate: ['success_rate'],
  MillraceDeadLetterCount: ['dead_letter_count'],
  MillraceLatencyP95: ['latency_p95'],
  ...Object.fromEntries(
    [
      'WorkerHeartbeatMissing',
      'WorkerAbsent',
      'WorkerPresenceUnreachable',
      'WorkerStuckProcessing',
      'WorkerShutdownOverdue',
      'DLQFinancial',
      'DLQNonFinancial',
      'ConsumerLagCritical',
      'ConsumerLagWarning',
    ].map((name) => [name, [name]]),
  ),
}

const compared = new Set(Object.values(COUNTERPARTS).flat())

interface ToldAlert {
  readonly rule: string
  readonly status: string
  readonly labels: Readonly<Record<string, string>>
}

/** A process knows one store, so it names neither its engine nor its store. */
function nameOf(rule: string, { engine: _, store: __, ...labels }: ToldAlert['labels']): string {
  return `${rule} ${JSON.stringify(Object.entries(labels).toSorted())}`
}

/** Those that fire and have a counterpart, as GET /api/v1/alerts tells them. */
export async function builtInAlerts(address: string): Promise<readonly string[]> {
  const { alerts }: { alerts: readonly ToldAlert[] } = JSON.parse(await textOf(`${address}/api/v1/alerts`))
  return alertNames(alerts)
}

export function alertNames(alerts: readonly ToldAlert[]): readonly string[] {
  const firing = alerts.filter(({ rule, status }) => status === 'firing' && compared.has(rule))
  return firing.map(({ rule, labels }) => nameOf(rule, labels)).toSorted()
}

/** What they must be where these fire in Prometheus. */
export function expectedOfBuiltIn(firing: Firing): readonly string[] {
  return Object.entries(firing)
    .flatMap(([alert, all]) => (COUNTERPARTS[alert] ?? []).flatMap((rule) => all.map((labels) => nameOf(rule, labels))))
    .toSorted()
}
