/** An endpoint: who gets which events, and how that went so far. */
import { OptionError } from '../../../src/errors.ts'
import type { Tenant } from '../../../src/job/job.ts'
import { booleanOf, dateOf, jsonOf, maybe, numberOf, textOf } from '../../database/columns.ts'
import type { Row } from '../../database/database.ts'

/** Without its secrets, which only `add` and `rotate` return. */
export interface WebhookEndpoint {
  readonly id: string
  readonly url: string
  readonly isEnabled: boolean
  readonly disabledReason: string | null
  readonly disabledAt: Date | null
  readonly maxFailures: number
  /** Names of events: exact, a prefix as in `order.*`, or `*` for all. */
  readonly events: readonly string[]
  readonly tenant: Tenant | null
  readonly description: string | null
  readonly successCount: number
  /** Failed attempts. */
  readonly failureCount: number
  /** The mean over all successful deliveries. */
  readonly avgLatencyMs: number
  readonly lastDeliveredAt: Date | null
  /** While a rotation lasts: until when the previous secrets sign too. */
  readonly previousSecretUntil: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** What `endpointOf` reads. */
export const ENDPOINT_COLUMNS = `id, url, is_enabled, disabled_reason, disabled_at, max_failures, events, org_id,
  workspace_id, description, success_count, failure_count, avg_latency_ms, last_delivered_at, previous_until, created_at,
  updated_at`

export function endpointOf(row: Row): WebhookEndpoint {
  const orgId = maybe(textOf, row, 'org_id')
  const workspaceId = maybe(textOf, row, 'workspace_id')
  return {
    id: textOf(row, 'id'),
    url: textOf(row, 'url'),
    isEnabled: booleanOf(row, 'is_enabled'),
    disabledReason: maybe(textOf, row, 'disabled_reason'),
    disabledAt: maybe(dateOf, row, 'disabled_at'),
    maxFailures: numberOf(row, 'max_failures'),
    events: eventsOf(row),
    tenant: orgId === null ? null : { orgId, ...(workspaceId !== null && { workspaceId }) },
    description: maybe(textOf, row, 'description'),
    successCount: numberOf(row, 'success_count'),
    failureCount: numberOf(row, 'failure_count'),
    avgLatencyMs: numberOf(row, 'avg_latency_ms'),
    lastDeliveredAt: maybe(dateOf, row, 'last_delivered_at'),
    previousSecretUntil: maybe(dateOf, row, 'previous_until'),
    createdAt: dateOf(row, 'created_at'),
    updatedAt: dateOf(row, 'updated_at'),
  }
}

export function eventsOf(row: Row): readonly string[] {
  const events = jsonOf(row, 'events')
  return Array.isArray(events) ? events.map(String) : []
}

/** The secrets that sign at this time, the newest first. */
export function secretsOf(row: Row, nowMs: number): readonly string[] {
  const previous = maybe(textOf, row, 'previous_secret')
  const until = maybe(dateOf, row, 'previous_until')
  const isValid = previous !== null && until !== null && until.getTime() > nowMs
  // Several are separated by spaces, which no secret contains.
  return isValid ? [textOf(row, 'secret'), ...previous.split(' ')] : [textOf(row, 'secret')]
}

const EVENT = /^[A-Za-z0-9_-]+(?:[.:][A-Za-z0-9_-]+)*$/
const FILTER = /^(?:\*|[A-Za-z0-9_-]+(?:[.:][A-Za-z0-9_-]+)*(?:[.:]\*)?)$/
const EVENT_LENGTH_MAX = 128

export function checkEvent(event: string): string {
  if (typeof event === 'string' && event.length <= EVENT_LENGTH_MAX && EVENT.test(event)) return event
  throw new OptionError(
    `the event is '${String(event).slice(0, EVENT_LENGTH_MAX)}'; give words separated by dots, such as order.paid`,
  )
}

export function checkFilters(events: readonly string[]): readonly string[] {
  const isFilter = (one: unknown): boolean =>
    typeof one === 'string' && one.length <= EVENT_LENGTH_MAX && FILTER.test(one)
  if (Array.isArray(events) && events.length > 0 && events.length <= 100 && events.every(isFilter)) return events
  throw new OptionError(`'events' needs 1 to 100 names of events, each exact, with an end as in 'order.*', or '*'`)
}

/** Whether one of the filters takes the event. `order.*` takes `order.paid` and `order.item.added`, not `order`. */
export function wants(filters: readonly string[], event: string): boolean {
  return filters.some(
    (one) => one === '*' || one === event || (one.endsWith('*') && event.startsWith(one.slice(0, -1))),
  )
}
