/** For receivers: checks that a request is a webhook that somebody with the secret has sent just now. */
import { timingSafeEqual } from 'node:crypto'
import { MillraceError, OptionError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type Duration, parseDurationMs } from '../../src/time/duration.ts'
import { sign } from './signing.ts'

type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>

/** A Fetch `Request`, or its parts. The body is what was received, unparsed: parsing and serializing changes bytes. */
export type ReceivedWebhook = Request | { readonly headers: Headers | HeaderValues; readonly body: string | Uint8Array }

export interface VerifyOptions {
  /** How far the timestamp may be from now, in both directions; default: 5m. An older request may be a replayed one. */
  readonly tolerance?: Duration
  readonly clock?: Clock
}

const OPTION_NAMES: OptionNames<VerifyOptions> = { tolerance: true, clock: true }

/** The request is not a webhook of the sender. Answer with status 401, and do nothing else. */
export class WebhookVerificationError extends MillraceError {
  constructor(message: string) {
    super('ERR_WEBHOOK_UNVERIFIED', message)
  }
}

/**
 * Returns the parsed JSON body of a genuine webhook, or throws `ERR_WEBHOOK_UNVERIFIED`. Give several secrets while one
 * replaces another. The header `webhook-id` is the same each time a delivery is repeated: remember it to skip duplicates.
 *
 * @example
 * app.post('/hooks', async (c) => {
 *   const { type, data } = await verifyWebhook(c.req.raw, process.env.WEBHOOK_SECRET)
 *   return c.body(null, 204)
 * })
 */
export async function verifyWebhook(
  received: ReceivedWebhook,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<unknown> {
  refuseUnknown(options, OPTION_NAMES, 'verifyWebhook')
  const { tolerance = '5m', clock = systemClock } = options
  const secrets = typeof secret === 'string' ? [secret] : secret
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw new OptionError(`there is no secret to verify with; give the one that 'webhooks add' printed`)
  }
  if (typeof received?.headers !== 'object' || received.headers === null) {
    throw new OptionError('there are no headers to verify; give a Request, or { headers, body }')
  }
  const id = headerOf(received.headers, 'webhook-id')
  const timestamp = checkTimestamp(headerOf(received.headers, 'webhook-timestamp'), {
    nowMs: clock.nowMs(),
    toleranceMs: parseDurationMs(tolerance, 'tolerance'),
  })
  const given = headerOf(received.headers, 'webhook-signature').split(' ')
  const body = await bodyOf(received)
  const expected = sign({ id, timestamp, body }, secrets).split(' ')
  // Every pair is compared, so the time does not tell which secret matched.
  const matches = expected.flatMap((one) => given.map((other) => isSame(one, other)))
  if (!matches.includes(true)) {
    throw new WebhookVerificationError('no signature matches; check the secret, and that the body is passed unparsed')
  }
  try {
    return JSON.parse(body)
  } catch {
    throw new WebhookVerificationError('the body is signed, but it is not JSON')
  }
}

function headerOf(headers: ReceivedWebhook['headers'], name: string): string {
  // By their methods, not by their class: another library's Headers are not an instance of Node's.
  const value = isHeaders(headers) ? headers.get(name) : plainHeader(headers, name)
  if (value !== null && value !== '') return value
  throw new WebhookVerificationError(`the header '${name}' is missing; this is not a signed webhook`)
}

function isHeaders(headers: ReceivedWebhook['headers']): headers is Headers {
  return 'get' in headers && typeof headers.get === 'function'
}

function plainHeader(headers: HeaderValues, name: string): string | null {
  const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name)
  const value = entry?.[1]
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.join(' ') : null
}

function checkTimestamp(
  text: string,
  { nowMs, toleranceMs }: { readonly nowMs: number; readonly toleranceMs: number },
): number {
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isNaN(seconds)) throw new WebhookVerificationError(`'webhook-timestamp' is not a number of seconds`)
  const apartMs = Math.abs(nowMs - seconds * 1_000)
  if (apartMs <= toleranceMs) return seconds
  throw new WebhookVerificationError(
    `the timestamp is ${Math.round(apartMs / 1_000)} s from now; it is a replayed request, or one of the clocks is wrong`,
  )
}

async function bodyOf(received: ReceivedWebhook): Promise<string> {
  if (isRequest(received)) {
    if (received.bodyUsed) throw new OptionError('the body was read already; verify before anything else reads it')
    return received.text()
  }
  const { body } = received
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
  throw new OptionError(`'body' is not text or bytes; pass the raw body, as express.raw() gives it`)
}

function isRequest(received: ReceivedWebhook): received is Request {
  return 'text' in received && typeof received.text === 'function'
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
