import { MillraceError, messageOf, OptionError } from '../../../src/errors.ts'
import { newJobId, type Tenant } from '../../../src/job/job.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { checkTenant } from '../../../src/job/options.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { type Duration, parseDurationMs } from '../../../src/time/duration.ts'
import { toIso } from '../../../src/time/iso.ts'
import { booleanOf, textOf } from '../../database/columns.ts'
import type { Queries, Value, WorkloadDatabase } from '../../database/database.ts'
import { checkSecret, newSecret } from '../signing.ts'
import { checkFilters, ENDPOINT_COLUMNS, endpointOf, eventsOf, secretsOf, type WebhookEndpoint } from './endpoint.ts'

export interface EndpointChange {
  readonly url?: string
  /** Default: every event. */
  readonly events?: readonly string[]
  /** Deliveries that may fail for good within 24 hours before the endpoint is disabled. Default: 10. */
  readonly maxFailures?: number
  readonly description?: string
}

export interface NewEndpoint extends EndpointChange {
  readonly url: string
  /** Gets the events of this tenant only; without a workspace, those of all its workspaces. Default: events without a tenant. */
  readonly tenant?: Tenant
  /** `whsec_` and 24 to 64 bytes in base64. Default: a new one. */
  readonly secret?: string
}

/** With the secret, which cannot be read again. */
export interface EndpointWithSecret extends WebhookEndpoint {
  readonly secret: string
}

/** What publishing needs to know of an endpoint. */
export type Subscriber = Pick<WebhookEndpoint, 'id' | 'isEnabled' | 'events'>

const CHANGE_NAMES: OptionNames<EndpointChange> = { url: true, events: true, maxFailures: true, description: true }
const NEW_NAMES: OptionNames<NewEndpoint> = { ...CHANGE_NAMES, tenant: true, secret: true }

const MAX_FAILURES_DEFAULT = 10
const DESCRIPTION_LENGTH_MAX = 500
const URL_LENGTH_MAX = 2_000
const ROTATION_DEFAULT = '24h'

const PREVIOUS_SECRETS_MAX = 3

const ROTATE = `UPDATE {webhook_endpoints} SET previous_secret = $5, previous_until = $3, secret = $2, updated_at = $4
WHERE id = $1 RETURNING ${ENDPOINT_COLUMNS}`

const SECRETS = 'SELECT secret, previous_secret, previous_until FROM {webhook_endpoints} WHERE id = $1'

const WANTED = `SELECT id, is_enabled, events FROM {webhook_endpoints}
WHERE org_id IS NOT DISTINCT FROM $1 AND (workspace_id IS NULL OR workspace_id = $2) ORDER BY id`

export interface EndpointsOptions {
  /** Returns the URL as it will be requested. Throws for one that no webhook may be sent to. */
  readonly checkUrl: (url: string) => URL
  readonly clock?: Clock
}

/** The endpoints in a database: add, list, show, update, enable, disable, rotate, remove. */
export class WebhookEndpoints {
  readonly #database: WorkloadDatabase
  readonly #checkUrl: EndpointsOptions['checkUrl']
  readonly #clock: Clock

  constructor(database: WorkloadDatabase, { checkUrl, clock = systemClock }: EndpointsOptions) {
    this.#database = database
    this.#checkUrl = checkUrl
    this.#clock = clock
  }

  /** Returns the endpoint with its secret, which is shown only here. */
  async add(endpoint: NewEndpoint): Promise<EndpointWithSecret> {
    refuseUnknown(endpoint, NEW_NAMES, 'add')
    checkText(endpoint.url, 'url', URL_LENGTH_MAX)
    const { events = ['*'], maxFailures = MAX_FAILURES_DEFAULT, description = null } = endpoint
    const secret = endpoint.secret === undefined ? newSecret() : checkSecret(endpoint.secret)
    const tenant = endpoint.tenant === undefined ? null : checkTenant(endpoint.tenant)
    const now = toIso(this.#clock.nowMs())
    const columns: Readonly<Record<string, Value>> = {
      ...{ id: newJobId(this.#clock.nowMs()), secret, is_enabled: true, enabled_at: now, created_at: now },
      ...{ updated_at: now, org_id: tenant?.orgId ?? null, workspace_id: tenant?.workspaceId ?? null },
      ...this.#columns({ url: endpoint.url, events, maxFailures, ...(description !== null && { description }) }),
    }
    const names = Object.keys(columns)
    const places = names.map((name, at) =>
      name === 'events' ? this.#database.dialect.json(`$${at + 1}`) : `$${at + 1}`,
    )
    const sql = `INSERT INTO {webhook_endpoints} (${names.join(', ')}) VALUES (${places.join(', ')}) RETURNING ${ENDPOINT_COLUMNS}`
    return { ...(await this.#change({ sql, values: Object.values(columns) }, '')), secret }
  }

  /** All, the oldest first. */
  async list(): Promise<readonly WebhookEndpoint[]> {
    return (await this.#database.read(`SELECT ${ENDPOINT_COLUMNS} FROM {webhook_endpoints} ORDER BY id`)).map(
      endpointOf,
    )
  }

  async show(id: string): Promise<WebhookEndpoint> {
    const [row] = await this.#database.read(`SELECT ${ENDPOINT_COLUMNS} FROM {webhook_endpoints} WHERE id = $1`, [id])
    if (row === undefined) throw unknownEndpoint(id)
    return endpointOf(row)
  }

  async update(id: string, change: EndpointChange): Promise<WebhookEndpoint> {
    refuseUnknown(change, CHANGE_NAMES, 'update')
    const columns = { ...this.#columns(change), updated_at: toIso(this.#clock.nowMs()) }
    const { json } = this.#database.dialect
    const sets = Object.keys(columns).map((name, at) => {
      const place = `$${at + 2}`
      return `${name} = ${name === 'events' ? json(place) : place}`
    })
    const sql = `UPDATE {webhook_endpoints} SET ${sets.join(', ')} WHERE id = $1 RETURNING ${ENDPOINT_COLUMNS}`
    return this.#change({ sql, values: [id, ...Object.values(columns)] }, id)
  }

  /** Its failures so far no longer count towards `maxFailures`. */
  enable(id: string): Promise<WebhookEndpoint> {
    const sql = `UPDATE {webhook_endpoints} SET is_enabled = $2, disabled_reason = NULL, disabled_at = NULL,
enabled_at = CASE WHEN is_enabled THEN enabled_at ELSE $3 END, updated_at = $3 WHERE id = $1 RETURNING ${ENDPOINT_COLUMNS}`
    return this.#change({ sql, values: [id, true, toIso(this.#clock.nowMs())] }, id)
  }

  /** Deliveries that wait are skipped; those that were tried become dead letters. */
  disable(id: string, reason = 'disabled by hand'): Promise<WebhookEndpoint> {
    const sql = `UPDATE {webhook_endpoints} SET is_enabled = $2, disabled_reason = $3, disabled_at = $4, updated_at = $4
WHERE id = $1 RETURNING ${ENDPOINT_COLUMNS}`
    return this.#change({ sql, values: [id, false, checkText(reason, 'reason'), toIso(this.#clock.nowMs())] }, id)
  }

  /**
   * Returns a new secret. The old one signs too until `keep` is over (default: 24h), so receivers can change in between. If it
   * has itself replaced one within that time, so does that one: three old secrets at most.
   */
  async rotate(
    id: string,
    options: { readonly keep?: Duration; readonly secret?: string } = {},
  ): Promise<EndpointWithSecret> {
    refuseUnknown(options, { keep: true, secret: true }, 'rotate')
    const secret = options.secret === undefined ? newSecret() : checkSecret(options.secret)
    const nowMs = this.#clock.nowMs()
    const until = toIso(nowMs + parseDurationMs(options.keep ?? ROTATION_DEFAULT, 'keep'))
    const changed = await this.#database.transaction(async ({ rows, dialect }) => {
      const [row] = await rows(`${SECRETS}${dialect.forUpdate}`, [id])
      if (row === undefined) throw unknownEndpoint(id)
      const previous = secretsOf(row, nowMs).slice(0, PREVIOUS_SECRETS_MAX).join(' ')
      return rows(ROTATE, [id, secret, until, toIso(nowMs), previous])
    })
    return { ...endpointOf(changed[0] ?? {}), secret }
  }

  /** Removes the endpoint and its secrets. Its deliveries stay until their retention is over. */
  async remove(id: string): Promise<void> {
    await this.#change(
      { sql: `DELETE FROM {webhook_endpoints} WHERE id = $1 RETURNING ${ENDPOINT_COLUMNS}`, values: [id] },
      id,
    )
  }

  /** The endpoints of a tenant, disabled ones too, in the caller's transaction. */
  async of(tenant: Tenant | null, queries: Queries): Promise<readonly Subscriber[]> {
    const rows = await queries.rows(WANTED, [tenant?.orgId ?? null, tenant?.workspaceId ?? null])
    return rows.map((row) => ({
      id: textOf(row, 'id'),
      isEnabled: booleanOf(row, 'is_enabled'),
      events: eventsOf(row),
    }))
  }

  async #change(statement: { readonly sql: string; readonly values: readonly Value[] }, id: string) {
    const [[row] = []] = await this.#database.write([statement])
    if (row === undefined) throw unknownEndpoint(id)
    return endpointOf(row)
  }

  #checkAddress(url: string): string {
    try {
      return this.#checkUrl(url).href
    } catch (error) {
      throw new OptionError(messageOf(error), { cause: error })
    }
  }

  #columns({ url, events, maxFailures, description }: EndpointChange): Readonly<Record<string, Value>> {
    return {
      ...(url !== undefined && { url: this.#checkAddress(checkText(url, 'url', URL_LENGTH_MAX)) }),
      ...(events !== undefined && { events: JSON.stringify(checkFilters(events)) }),
      ...(maxFailures !== undefined && { max_failures: checkMaxFailures(maxFailures) }),
      ...(description !== undefined && { description: checkText(description, 'description') }),
    }
  }
}

function checkMaxFailures(count: number): number {
  if (Number.isInteger(count) && count >= 1 && count <= 1_000_000) return count
  throw new OptionError(`'maxFailures' is ${count}; give a whole number from 1 to 1000000`)
}

function checkText(text: string, name: string, lengthMax = DESCRIPTION_LENGTH_MAX): string {
  if (typeof text === 'string' && text.length <= lengthMax && text.isWellFormed() && !/\p{Cc}/u.test(text)) return text
  throw new OptionError(`'${name}' must be at most ${lengthMax} printable characters`)
}

export function unknownEndpoint(id: string): MillraceError {
  return new MillraceError('ERR_RECORD_UNKNOWN', `no webhook has the id '${id}'; see millrace webhooks list`)
}
