import { fieldOf, NonRetryable, OptionError, RetryAfter } from '../../src/errors.ts'
import { backoffMs } from '../../src/job/backoff.ts'
import { cut, storable, toErrorRecord } from '../../src/job/error-record.ts'
import { type OptionNames, omitUndefined, refuseUnknown } from '../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { BaseWorker, type WorkerOutlets } from '../framework/base-worker.ts'
import { JOB_TYPES } from '../framework/job-types.ts'
import type { Limiter } from '../framework/options.ts'
import type { WorkerJob } from '../framework/worker-job.ts'
import { Bookkeeping } from './bookkeeping.ts'
import { dispatchPayload, type WebhookDispatchData } from './payload.ts'
import type { HttpClient, HttpResponse, Webhook, WebhookRepositoryPort } from './port.ts'
import { requestHeaders, USER_AGENT } from './request.ts'
import { HttpError } from './sending/errors.ts'
import { retryAfterMs } from './sending/retry-after.ts'

export type WebhookDispatchResult =
  | { readonly success: true; readonly statusCode: number; readonly latencyMs: number }
  | { readonly success: false; readonly reason: 'webhook_disabled' }
  | { readonly success: false; readonly reason: 'non_retryable_error'; readonly error: string }

/** Makes the job a dead letter, with an alert. `result` is what the job would have returned. */
export class WebhookFailure extends NonRetryable {
  readonly result: Extract<WebhookDispatchResult, { readonly success: false }>

  constructor(result: WebhookFailure['result'], message: string, options?: ErrorOptions) {
    super(`${result.reason}: ${message}`, options)
    this.result = result
  }
}

export interface DispatchOptions extends WorkerOutlets {
  /** Default: 20. */
  readonly concurrency?: number
  /** Default: 100 starts per 1000 ms over all workers. Null: no limit. */
  readonly limiter?: Limiter | null
  /** Default: RuvBot-Webhook/1.0. */
  readonly userAgent?: string
}

const OPTION_NAMES: OptionNames<DispatchOptions> = {
  ...{ concurrency: true, limiter: true, userAgent: true },
  ...{ log: true, metrics: true, alerter: true, clock: true },
}

export const HTTP_TIMEOUT_MS = 10_000
const RESPONSE_LENGTH_MAX = 1_000

type Job = WorkerJob<WebhookDispatchData>

/**
 * Sends webhooks: one job is one delivery to one endpoint. The receiver's status decides about the job; what is recorded
 * about it never does. A job whose success is on record does not send again.
 *
 * @example
 * const worker = new WebhookDispatchWorker(guardedHttp(), new WebhookRepository(database))
 * await mill.work([worker.definition])
 */
export class WebhookDispatchWorker extends BaseWorker<WebhookDispatchData, WebhookDispatchResult> {
  readonly #http: HttpClient
  readonly #webhookRepo: WebhookRepositoryPort
  readonly #bookkeeping: Bookkeeping
  readonly #clock: Clock
  readonly #userAgent: string

  constructor(http: HttpClient, webhookRepo: WebhookRepositoryPort, options: DispatchOptions = {}) {
    refuseUnknown(options, OPTION_NAMES, 'WebhookDispatchWorker')
    const { concurrency = 20, limiter = { max: 100, duration: 1_000 }, userAgent = USER_AGENT, ...outlets } = options
    super(
      JOB_TYPES.WEBHOOK_DISPATCH,
      { concurrency, ...(limiter !== null && { limiter }), payload: dispatchPayload },
      omitUndefined(outlets),
    )
    this.#http = http
    this.#webhookRepo = webhookRepo
    this.#clock = options.clock ?? systemClock
    this.#userAgent = checkUserAgent(userAgent)
    this.#bookkeeping = new Bookkeeping(webhookRepo, { log: this.logger, metrics: this.metrics, clock: this.#clock })
  }

  async process(data: WebhookDispatchData, job: Job): Promise<WebhookDispatchResult> {
    const deliveryId = data.deliveryId ?? job.id
    const [webhook, prior] = await Promise.all([
      this.#webhookRepo.findById(data.webhookId),
      this.#webhookRepo.findPrior?.({ deliveryId, ...(data.isRedelivery === true && { jobId: job.id }) }) ?? null,
    ])
    if (prior !== null && prior.success !== null) {
      this.metrics.increment('already_delivered')
      return { success: true, ...prior.success }
    }
    if (webhook === null || !webhook.isEnabled) {
      return this.#skip(data.webhookId, webhook, job.attempt > 1 || prior?.hasFailed === true)
    }
    return this.#deliver({ data, job, deliveryId, webhook })
  }

  /** A delivery that was tried must not vanish as a completed job; one that never was is only skipped. */
  #skip(webhookId: string, webhook: Webhook | null, wasTried: boolean): WebhookDispatchResult {
    const result = { success: false, reason: 'webhook_disabled' } as const
    const why = webhook === null ? 'was removed' : `is disabled (${webhook.disabledReason ?? 'no reason given'})`
    if (wasTried) throw new WebhookFailure(result, `the endpoint ${webhookId} ${why}; enable it and replay this job`)
    this.metrics.increment('skipped')
    this.logger.info('Webhook skipped', { webhook_id: webhookId, reason: why })
    return result
  }

  async #deliver(delivery: Delivery): Promise<WebhookDispatchResult> {
    const { data, job, deliveryId, webhook } = delivery
    const startedMs = this.#clock.monotonicMs()
    const about = (): Recorded => ({
      ...{ webhookId: data.webhookId, jobId: job.id, deliveryId, attempt: job.attempt, token: job.token },
      ...(data.event !== undefined && { event: data.event }),
      latencyMs: Math.round(this.#clock.monotonicMs() - startedMs),
    })
    let response: HttpResponse
    try {
      response = await this.#send(delivery)
    } catch (error) {
      // The worker stops or has lost the job: that says nothing about the receiver.
      if (job.signal.aborted) throw error
      return this.#failed(error, about(), { job, webhook })
    }
    const recorded = about()
    const responseBody = textOf(response.data)
    await this.#bookkeeping.succeeded({ ...recorded, statusCode: response.status, ...responseBody })
    this.metrics.increment('delivered')
    this.metrics.timing('latency', recorded.latencyMs)
    return { success: true, statusCode: response.status, latencyMs: recorded.latencyMs }
  }

  async #send({ data, job, deliveryId, webhook }: Delivery): Promise<HttpResponse> {
    const body = JSON.stringify(data.payload)
    const { headers, dropped } = requestHeaders({
      ...{ webhookId: data.webhookId, deliveryId, body, userAgent: this.#userAgent },
      ...{ headers: data.headers ?? {}, secrets: webhook.secrets ?? [], signature: data.signature },
      nowMs: this.#clock.nowMs(),
    })
    if (dropped.length > 0) this.logger.warn('Reserved headers were left out', { job_id: job.id, headers: dropped })
    const request = { body, headers, timeout: HTTP_TIMEOUT_MS, signal: job.signal }
    const response = await this.#http.post(webhook.url, request)
    const { status } = response
    if (status >= 200 && status < 300) return response
    const error = new HttpError(status, hostOf(webhook.url))
    const delayMs = retryAfterMs(response, this.#clock.nowMs()) ?? 0
    // Never sooner than the backoff: servers that are down say `Retry-After: 0`, and the attempts would be used up at once.
    const usualMs = backoffMs(this.definition.backoff, job.attempt, () => 1)
    throw delayMs > usualMs ? new RetryAfter(delayMs, error.message, { cause: error }) : error
  }

  async #failed(
    error: unknown,
    recorded: Recorded,
    { job, webhook }: { readonly job: Job; readonly webhook: Webhook },
  ): Promise<never> {
    const isWorthRetrying = this.isRetryable(error)
    const { message } = toErrorRecord(error)
    const status = fieldOf(error, 'status') ?? fieldOf(fieldOf(error, 'cause'), 'status')
    await this.#bookkeeping.failed(
      {
        ...recorded,
        errorMessage: cut(message, RESPONSE_LENGTH_MAX),
        ...(typeof status === 'number' && { statusCode: status }),
        isFinal: !isWorthRetrying || job.attempt >= job.attempts,
      },
      webhook.maxFailures,
    )
    this.metrics.increment('delivery_failed')
    if (isWorthRetrying) throw error
    const result = { success: false, reason: 'non_retryable_error', error: message } as const
    throw new WebhookFailure(result, message, { cause: error })
  }
}

interface Delivery {
  readonly data: WebhookDispatchData
  readonly job: Job
  readonly deliveryId: string
  readonly webhook: Webhook
}

interface Recorded {
  readonly webhookId: string
  readonly jobId: string
  readonly deliveryId: string
  readonly attempt: number
  readonly token: string
  readonly event?: string
  readonly latencyMs: number
}

function checkUserAgent(text: string): string {
  if (typeof text === 'string' && /^[\x20-\x7e]{1,256}$/.test(text)) return text
  throw new OptionError(`'userAgent' must be 1 to 256 printable characters of ASCII`)
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'an unknown host'
}

function textOf(data: unknown): { readonly responseBody?: string } {
  if (data === undefined || data === null) return {}
  const text = typeof data === 'string' ? data : String(data)
  return { responseBody: storable(cut(text, RESPONSE_LENGTH_MAX)) }
}
