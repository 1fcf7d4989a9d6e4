/** One request to a model's API, and what each kind of failure means for the job. */
import { NonRetryable, RetryAfter } from '../../src/errors.ts'
import type { Clock } from '../../src/time/clock.ts'
import { type ModelCall, ModelFailure } from './model-call.ts'

export interface Posted {
  readonly status: number
  readonly type: string
  readonly text: string
  /** From Retry-After. Null without one. */
  readonly retryAfterMs: number | null
}

const BODY_BYTES_MAX = 4 * 1024 * 1024
/** For a server that asks for patience and does not say how long. */
const PATIENCE_MS = 30_000
/** A longer Retry-After is most likely a mistake; the server can ask again. */
const RETRY_AFTER_MS_MAX = 3_600_000
/** A date that has passed would use up the attempts at once. */
const RETRY_AFTER_MS_MIN = 1_000

export async function post(url: string, { headers, body, call, clock }: PostOptions): Promise<Posted> {
  const response = await call.fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: call.signal,
  })
  const text = await readBody(response, call.signal, hostOf(url))
  return {
    status: response.status,
    type: response.headers.get('content-type') ?? 'no content type',
    text,
    retryAfterMs: readRetryAfter(response.headers.get('retry-after'), clock.nowMs()),
  }
}

interface PostOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  readonly call: ModelCall
  readonly clock: Clock
}

function hostOf(url: string): string {
  return new URL(url).host
}

async function readBody(response: Response, signal: AbortSignal, host: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength
      // Leaving the loop closes the connection.
      if (bytes > BODY_BYTES_MAX) break
      chunks.push(chunk)
    }
  } catch {
    signal.throwIfAborted()
    throw new ModelFailure(`the answer of ${host} broke off after ${bytes} bytes`)
  }
  if (bytes > BODY_BYTES_MAX) throw new ModelFailure(`the answer of ${host} is longer than ${BODY_BYTES_MAX} bytes`)
  return Buffer.concat(chunks).toString('utf8')
}

/** Seconds or an HTTP date, as RFC 9110 allows. Null for anything else. */
function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  const value = header.trim()
  const ms = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, RETRY_AFTER_MS_MIN), RETRY_AFTER_MS_MAX)
}

/**
 * The JSON of a good answer. Errors name the host, the status and the kind of error that the server states, never its text,
 * which can quote a message.
 */
export function jsonOf(posted: Posted, url: string, credentials: string): unknown {
  const { status, text, type } = posted
  if (status >= 200 && status < 300) {
    try {
      return JSON.parse(text)
    } catch {
      throw new ModelFailure(
        `${hostOf(url)} answered with ${type.slice(0, 100)} that is not JSON; check the URL of the model`,
      )
    }
  }
  throw failure(posted, `${hostOf(url)} answered with ${status}${kindOf(text)}`, credentials)
}

function failure({ status, retryAfterMs }: Posted, what: string, credentials: string): Error {
  if (status === 401 || status === 403) return new NonRetryable(`${what}; check ${credentials} and replay the job`)
  if (status === 429 || status === 503 || status === 529) return new RetryAfter(retryAfterMs ?? PATIENCE_MS, what)
  if (retryAfterMs !== null) return new RetryAfter(retryAfterMs, what)
  if (status >= 500 || status === 408 || status === 409 || status === 425) return new ModelFailure(what)
  return new NonRetryable(`${what}; check the URL and the name of the model, and replay the job`)
}

/** Such as ` (overloaded_error)`. Only a plain word: a server could put anything there. */
function kindOf(text: string): string {
  const kind = /"(?:type|code)"\s*:\s*"([a-z_]{3,40})"/g
  const words = [...text.slice(0, 10_000).matchAll(kind)].map(([, word]) => word).filter((word) => word !== 'error')
  return words[0] === undefined ? '' : ` (${words[0]})`
}
