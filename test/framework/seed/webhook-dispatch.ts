import { JOB_TYPES, type WorkerJob as Job, type WorkerOutlets } from 'millrace/workloads/framework'
import { RuvBotWorker } from './ruvbot-worker.ts'

interface HttpError extends Error {
  readonly status?: number
}

export interface WebhookPorts {
  readonly http: { post(url: string, request: object): Promise<{ readonly status: number; readonly data?: string }> }
  readonly webhookRepo: {
    findById(
      id: string,
    ): Promise<{ readonly url: string; readonly isEnabled: boolean; readonly maxFailures: number } | null>
    recordDelivery(delivery: object): Promise<void>
    updateStats(id: string, stats: object): Promise<void>
    countRecentFailures(id: string, windowMs: number): Promise<number>
    disable(id: string, reason: string): Promise<void>
  }
}

interface WebhookDispatchData {
  readonly webhookId: string
  readonly payload: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signature: string
}

export class WebhookDispatchWorker extends RuvBotWorker<WebhookDispatchData, object> {
  private readonly http: WebhookPorts['http']
  private readonly webhookRepo: WebhookPorts['webhookRepo']

  constructor(http: WebhookPorts['http'], webhookRepo: WebhookPorts['webhookRepo'], outlets: WorkerOutlets) {
    super(JOB_TYPES.WEBHOOK_DISPATCH, { concurrency: 20, limiter: { max: 100, duration: 1000 } }, outlets)
    this.http = http
    this.webhookRepo = webhookRepo
  }

  async process(data: WebhookDispatchData, job: Job): Promise<object> {
    const { webhookId, payload, headers, signature } = data
    const webhook = await this.webhookRepo.findById(webhookId)
    if (!webhook?.isEnabled) {
      return { success: false, reason: 'webhook_disabled' }
    }
    const requestHeaders: Record<string, string> = {
      'Content-Type': 'application/json',
      'User-Agent': 'RuvBot-Webhook/1.0',
      'X-Webhook-Id': webhookId,
      'X-Delivery-Id': job.id,
      'X-Signature': signature,
      ...headers,
    }
    const startTime = Date.now()
    try {
      const request = { body: JSON.stringify(payload), headers: requestHeaders, timeout: 10000 }
      const response = await this.http.post(webhook.url, request)
      const latency = Date.now() - startTime
      await this.webhookRepo.recordDelivery({
        webhookId,
        jobId: job.id,
        status: 'success',
        statusCode: response.status,
        latencyMs: latency,
        responseBody: response.data?.slice(0, 1000),
      })
      await this.webhookRepo.updateStats(webhookId, {
        lastDeliveredAt: new Date(),
        successCount: { increment: 1 },
        avgLatencyMs: latency,
      })
      return { success: true, statusCode: response.status, latencyMs: latency }
    } catch (error) {
      const latency = Date.now() - startTime
      const httpError = error as HttpError
      await this.webhookRepo.recordDelivery({
        webhookId,
        jobId: job.id,
        status: 'failed',
        statusCode: httpError.status,
        latencyMs: latency,
        errorMessage: httpError.message,
      })
      await this.webhookRepo.updateStats(webhookId, { failureCount: { increment: 1 } })
      const recentFailures = await this.webhookRepo.countRecentFailures(webhookId, 24 * 60 * 60 * 1000)
      if (recentFailures >= webhook.maxFailures) {
        await this.webhookRepo.disable(webhookId, 'max_failures_exceeded')
        this.metrics.increment('webhook_disabled')
      }
      throw error
    }
  }
}
