/** What is written about a delivery. Nothing that goes wrong here changes the job: a webhook is not sent again because of it. */
import { messageOf } from '../../src/errors.ts'
import type { Log } from '../../src/job/definition.ts'
import { redact } from '../../src/job/error-record.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { Metrics } from '../framework/metrics.ts'
import type { DeliveryRecord, WebhookRepositoryPort } from './port.ts'

/** The window in which failures are counted. */
export const FAILURE_WINDOW_MS = 86_400_000

/** A store that does not answer must not use up the job's timeout, which would send the webhook again. */
const WRITE_MS_MAX = 5_000

interface BookkeepingParts {
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
}

type Outcome = Omit<DeliveryRecord, 'status'>

export class Bookkeeping {
  readonly #repo: WebhookRepositoryPort
  readonly #parts: BookkeepingParts

  constructor(repo: WebhookRepositoryPort, parts: BookkeepingParts) {
    this.#repo = repo
    this.#parts = parts
  }

  succeeded(outcome: Outcome): Promise<void> {
    return this.#kept(outcome, () => this.#record({ ...outcome, status: 'success' }))
  }

  /** Disables the endpoint when enough deliveries have failed for good. */
  failed(outcome: Outcome, maxFailures: number): Promise<void> {
    return this.#kept(outcome, async () => {
      await this.#record({ ...outcome, status: 'failed' })
      if (outcome.isFinal === true) await this.#disableAfter(outcome.webhookId, maxFailures)
    })
  }

  async #record(delivery: DeliveryRecord): Promise<void> {
    if (this.#repo.recordOutcome !== undefined) {
      await this.#repo.recordOutcome(delivery)
      return
    }
    await this.#repo.recordDelivery(delivery)
    await this.#repo.updateStats(
      delivery.webhookId,
      delivery.status === 'failed'
        ? { failureCount: { increment: 1 } }
        : {
            lastDeliveredAt: new Date(this.#parts.clock.nowMs()),
            successCount: { increment: 1 },
            avgLatencyMs: delivery.latencyMs,
          },
    )
  }

  async #disableAfter(webhookId: string, maxFailures: number): Promise<void> {
    const failures = await this.#repo.countRecentFailures(webhookId, FAILURE_WINDOW_MS)
    if (failures < maxFailures) return
    // A repository that says false has found it disabled already.
    if ((await this.#repo.disable(webhookId, 'max_failures_exceeded')) === false) return
    this.#parts.metrics.increment('webhook_disabled')
    this.#parts.log.warn('Webhook disabled', { webhook_id: webhookId, reason: 'max_failures_exceeded', failures })
  }

  async #kept({ jobId, webhookId }: Outcome, write: () => Promise<void>): Promise<void> {
    const { log, metrics, clock } = this.#parts
    const lost = (error: unknown): void => {
      metrics.increment('bookkeeping_failed')
      log.error('A delivery could not be recorded', {
        ...{ job_id: jobId, webhook_id: webhookId, error: redact(messageOf(error)) },
      })
    }
    // A stub may throw before it returns a promise.
    const written = Promise.resolve().then(write).catch(lost)
    await new Promise<void>((resolve) => {
      const stop = clock.after(WRITE_MS_MAX, () => {
        log.warn('Recording a delivery takes long', { job_id: jobId, webhook_id: webhookId })
        resolve()
      })
      void written.then(() => {
        stop()
        resolve()
      })
    })
  }
}
