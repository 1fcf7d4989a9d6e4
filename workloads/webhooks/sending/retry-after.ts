import type { HttpResponse } from '../port.ts'

/** A receiver cannot put a delivery off for longer. */
export const RETRY_AFTER_MS_MAX = 3_600_000

/**
 * How long the header `Retry-After` of a 429 or 503 asks to wait, from now and at most an hour: a number of seconds or an
 * HTTP date. Null without one that can be read.
 */
export function retryAfterMs({ status, headers }: HttpResponse, nowMs: number): number | null {
  const value = headers?.['retry-after']
  const text = (typeof value === 'string' ? value : value?.[0])?.trim()
  if (text === undefined || (status !== 429 && status !== 503)) return null
  // A form without letters would be read as a year by Date.parse.
  const ms = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : /[A-Za-z]{3}/.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX)
}
