/** A signed `webhook.test` event, sent at once and without a job. */
import { fieldOf } from '../../src/errors.ts'
import { errorText } from '../../src/job/error-record.ts'
import { newJobId } from '../../src/job/job.ts'
import type { Clock } from '../../src/time/clock.ts'
import { toIso } from '../../src/time/iso.ts'
import { HTTP_TIMEOUT_MS } from './dispatch-worker.ts'
import type { HttpClient, Webhook } from './port.ts'
import { requestHeaders } from './request.ts'

const TEST_EVENT = 'webhook.test'

export interface TestResult {
  readonly success: boolean
  /** Null when there was no response. */
  readonly statusCode: number | null
  readonly latencyMs: number
  readonly error: string | null
}

export interface TestParts {
  readonly http: HttpClient
  readonly clock: Clock
  readonly userAgent: string
}

export async function sendTest(
  webhook: Webhook & { readonly id: string },
  { http, clock, userAgent }: TestParts,
): Promise<TestResult> {
  const nowMs = clock.nowMs()
  const body = JSON.stringify({ type: TEST_EVENT, timestamp: toIso(nowMs), data: {} })
  const { headers } = requestHeaders({
    ...{ webhookId: webhook.id, deliveryId: newJobId(nowMs), body, userAgent, nowMs },
    ...{ headers: {}, secrets: webhook.secrets ?? [], signature: undefined },
  })
  const startedMs = clock.monotonicMs()
  const latencyMs = (): number => Math.round(clock.monotonicMs() - startedMs)
  try {
    const { status } = await http.post(webhook.url, { body, headers, timeout: HTTP_TIMEOUT_MS })
    const success = status >= 200 && status < 300
    return { success, statusCode: status, latencyMs: latencyMs(), error: success ? null : `status ${status}` }
  } catch (error) {
    const status = fieldOf(error, 'status')
    const statusCode = typeof status === 'number' ? status : null
    return { success: false, statusCode, latencyMs: latencyMs(), error: errorText(error) }
  }
}
