import { z } from 'zod'
import { DEAD_LETTER_ROUTES, Operation } from './dead-letters.ts'
import { JOB_ROUTES } from './jobs.ts'
import { Alert, HistoryPoint, OPERATING_ROUTES, Overview } from './operating.ts'
import { SCHEDULE_ROUTES } from './schedules.ts'
import { TYPE_ROUTES } from './types.ts'

export const ROUTES = {
  ...OPERATING_ROUTES,
  ...TYPE_ROUTES,
  ...SCHEDULE_ROUTES,
  ...JOB_ROUTES,
  ...DEAD_LETTER_ROUTES,
} as const

export type Routes = typeof ROUTES
export type RouteId = keyof Routes

/**
 * The event stream, `GET /api/v1/events` (text/event-stream): `event` is one of these names, `data` is JSON. It tells a page
 * when to reload; the data comes from the routes.
 */

export const STREAM_PATH = '/api/v1/events'

/** POST of `{ token }` or `{ link }`, which sets the cookie, and POST without a body, which removes it. Both answer 204. */
export const LOGIN_PATH = '/api/v1/login'
export const LOGOUT_PATH = '/api/v1/logout'

export const STREAM_EVENTS = {
  /** At most once a second, when it has changed. */
  overview: Overview,
  /** The next point of the charts. */
  point: HistoryPoint,
  /** Jobs that changed in this process, at most four times a second and 100 ids each. */
  jobs: z.object({ ids: z.array(z.string()) }),
  operation: Operation,
  alert: Alert,
} as const

export type StreamEvents = { readonly [Name in keyof typeof STREAM_EVENTS]: z.output<(typeof STREAM_EVENTS)[Name]> }
