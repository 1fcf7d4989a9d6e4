/** The headers of a webhook. */
import { sign } from './signing.ts'

export const USER_AGENT = 'RuvBot-Webhook/1.0'

/** Set here or by the connection: a job can neither replace nor repeat them. */
const RESERVED = new Set([
  ...['content-type', 'user-agent', 'x-webhook-id', 'x-delivery-id', 'x-signature'],
  ...['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  ...['host', 'content-length', 'content-encoding', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te'],
  ...['trailer', 'expect', 'proxy-authorization', 'proxy-connection'],
])

export interface RequestParts {
  readonly webhookId: string
  readonly deliveryId: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly userAgent: string
  readonly secrets: readonly string[]
  /** Used only without secrets. */
  readonly signature: string | undefined
  readonly nowMs: number
}

export interface RequestHeaders {
  readonly headers: Readonly<Record<string, string>>
  /** The names of headers that were left out because they are reserved. */
  readonly dropped: readonly string[]
}

export function requestHeaders(parts: RequestParts): RequestHeaders {
  const { webhookId, deliveryId, body, userAgent, secrets, signature, nowMs } = parts
  const given = Object.entries(parts.headers)
  const timestamp = Math.floor(nowMs / 1_000)
  const signed = secrets.length === 0 ? signature : sign({ id: deliveryId, timestamp, body }, secrets)
  return {
    dropped: given.filter(([name]) => RESERVED.has(name.toLowerCase())).map(([name]) => name),
    headers: {
      ...Object.fromEntries(given.filter(([name]) => !RESERVED.has(name.toLowerCase()))),
      'Content-Type': 'application/json',
      'User-Agent': userAgent,
      'X-Webhook-Id': webhookId,
      'X-Delivery-Id': deliveryId,
      'webhook-id': deliveryId,
      'webhook-timestamp': String(timestamp),
      ...(signed !== undefined && { 'X-Signature': signed }),
      ...(signed !== undefined && secrets.length > 0 && { 'webhook-signature': signed }),
    },
  }
}
