import { messageOf, Offline } from '../../../src/errors.ts'
import type { Clock } from '../../../src/time/clock.ts'

/** What a call to IPFS or the chain needs. */
export interface Caller {
  /** Reaches only the configured endpoints. */
  readonly fetch: typeof fetch
  readonly clock: Clock
  /** Aborts at the job's timeout, when its lease is lost and when the worker stops. */
  readonly signal: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly text: string
}

const REQUEST_MS = 30_000
const ANSWER_CHARS_MAX = 4_000_000

/** An overloaded or restarting server. The job is deferred as if there were no connection. */
const UNAVAILABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

/**
 * POSTs and reads the answer. No connection, no answer in time and an overloaded server are `Offline`: the job waits and no
 * attempt is used. Messages name the service and never the URL, because many contain an access key.
 */
export async function post(service: string, url: string, init: RequestInit, caller: Caller): Promise<Answer> {
  const late = new AbortController()
  const cancel = caller.clock.after(REQUEST_MS, () => late.abort())
  try {
    // A redirect would lead to an endpoint that nobody approved.
    const signal = AbortSignal.any([caller.signal, late.signal])
    const response = await caller.fetch(url, { ...init, method: 'POST', redirect: 'error', signal })
    if (UNAVAILABLE.has(response.status)) {
      await response.body?.cancel()
      throw new Offline(`${service} answers ${response.status}`, { delay: retryAfterMs(response) })
    }
    return { status: response.status, text: await readText(response, service) }
  } catch (error) {
    if (caller.signal.aborted) throw caller.signal.reason
    if (late.signal.aborted) throw new Offline(`${service} did not answer within ${REQUEST_MS} ms`)
    // What `fetch` throws when there is no connection, or it broke. A refused endpoint is an error of another class.
    if (error instanceof TypeError) throw new Offline(`${service} cannot be reached: ${reasonOf(error)}`)
    throw error
  } finally {
    cancel()
  }
}

const RETRY_SECONDS = 60

function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get('retry-after') ?? RETRY_SECONDS)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3_600) * 1_000 : RETRY_SECONDS * 1_000
}

/** The code of the socket's error, such as ECONNREFUSED; its message may contain the URL. */
function reasonOf(error: TypeError): string {
  const code: unknown =
    typeof error.cause === 'object' && error.cause !== null ? Reflect.get(error.cause, 'code') : null
  return typeof code === 'string' ? code : 'the connection failed'
}

async function readText(response: Response, service: string): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > ANSWER_CHARS_MAX) throw new Error(`${service} answered more than ${ANSWER_CHARS_MAX} characters`)
  }
  return text + decoder.decode()
}

/** JSON without the text in the error: what a server answers may repeat what was sent. */
export function parseAnswer(service: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${service} answered ${text.length} characters that are not JSON (${errorName(error)})`)
  }
}

function errorName(error: unknown): string {
  return error instanceof Error ? error.name : messageOf(error)
}
