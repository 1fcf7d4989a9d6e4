/**
 * The event stream, `GET /api/v1/events` (text/event-stream). Names are those of the SSE `event` field; `data` is JSON.
 * It tells a page when to look again; what a page shows comes from the routes.
 */
import { z } from 'zod'
import { Operation } from './dead-letters.ts'
import { Alert, HistoryPoint, Overview } from './operating.ts'

export const STREAM_PATH = '/api/v1/events'

export const STREAM_EVENTS = {
  /** Every second at most, when it differs from the last one. */
  overview: Overview,
  /** One more point for the charts. */
  point: HistoryPoint,
  /** Jobs that changed in this process since the last one, at most four times a second and 100 ids each. */
  jobs: z.object({ ids: z.array(z.string()) }),
  operation: Operation,
  alert: Alert,
} as const

export type StreamEvents = { readonly [Name in keyof typeof STREAM_EVENTS]: z.output<(typeof STREAM_EVENTS)[Name]> }
