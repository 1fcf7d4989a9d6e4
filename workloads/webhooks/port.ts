/** What the dispatch worker needs of the world. Both ports accept stubs. */

export interface HttpRequest {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  /** For the whole request, in milliseconds: DNS, connecting, TLS, headers and body. */
  readonly timeout: number
  readonly signal?: AbortSignal
}

export interface HttpResponse {
  readonly status: number
  /** The body, or its start. Text is stored as it is, anything else through `String`. */
  readonly data?: unknown
  /** By name in lower case. Only `retry-after` is read. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Sends one request and follows no redirect. It may throw for a status of 300 or more; the error then has a `status`. */
export interface HttpClient {
  post(url: string, request: HttpRequest): Promise<HttpResponse>
}

/** An endpoint, as the worker sees it. */
export interface Webhook {
  readonly url: string
  readonly isEnabled: boolean
  /** Deliveries that may fail for good within 24 hours before the endpoint is disabled. */
  readonly maxFailures: number
  /** The secrets that sign now: one, or more while a rotation lasts. Without any, the job's own signature is sent. */
  readonly secrets?: readonly string[]
  /** Why it is disabled. */
  readonly disabledReason?: string | null
}

export interface DeliveryRecord {
  readonly webhookId: string
  readonly jobId: string
  readonly status: 'success' | 'failed'
  readonly statusCode?: number
  readonly latencyMs: number
  /** At most 1000 characters. */
  readonly responseBody?: string
  /** Redacted, at most 1000 characters. */
  readonly errorMessage?: string
  /** The id of the first job of the delivery; replays and redeliveries keep it. Default: `jobId`. */
  readonly deliveryId?: string
  /** Default: 1. */
  readonly attempt?: number
  /** Names this start of the job: a second record of the same start changes nothing. Default: the attempt. */
  readonly token?: string
  readonly event?: string
  /** The job will not be tried again. Default: false. */
  readonly isFinal?: boolean
}

export interface StatsUpdate {
  readonly lastDeliveredAt?: Date
  readonly successCount?: { readonly increment: number }
  readonly failureCount?: { readonly increment: number }
  /** The latency of this delivery. What is stored is the mean over all successful ones. */
  readonly avgLatencyMs?: number
}

/** What is known of a delivery before it is sent. */
export interface PriorDelivery {
  /** The successful one, if there is one. */
  readonly success: { readonly statusCode: number; readonly latencyMs: number } | null
  readonly hasFailed: boolean
}

export interface WebhookRepositoryPort {
  findById(webhookId: string): Promise<Webhook | null>
  recordDelivery(delivery: DeliveryRecord): Promise<unknown>
  updateStats(webhookId: string, stats: StatsUpdate): Promise<unknown>
  /** Distinct deliveries that failed for good within the last `windowMs`. */
  countRecentFailures(webhookId: string, windowMs: number): Promise<number>
  disable(webhookId: string, reason: string): Promise<unknown>
  /**
   * The record and the stats in one write, once for each start of a job. Without it the worker calls `recordDelivery` and
   * `updateStats`, and a crash between the two loses a count.
   */
  recordOutcome?(delivery: DeliveryRecord): Promise<unknown>
  /** Without it a job that is run again after its success was recorded sends again. */
  findPrior?(delivery: { readonly deliveryId: string; readonly jobId?: string }): Promise<PriorDelivery>
}
