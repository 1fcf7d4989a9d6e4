/** Publishing: one job for each endpoint that wants the event, all in one transaction. */
import type { Mill } from '../../src/client/mill.ts'
import { prepareJobs } from '../../src/client/prepare.ts'
import type { Transaction } from '../../src/engine/engine.ts'
import { OptionError } from '../../src/errors.ts'
import type { AnyJob } from '../../src/job/definition.ts'
import type { NewJob, Tenant } from '../../src/job/job.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { checkKey, checkTenant, PAYLOAD_BYTES_MAX_DEFAULT } from '../../src/job/options.ts'
import type { Clock } from '../../src/time/clock.ts'
import { toIso } from '../../src/time/iso.ts'
import { jsonOf } from '../database/columns.ts'
import type { Queries, WorkloadDatabase, WorkloadTransaction } from '../database/database.ts'
import type { WebhookDispatchData } from './payload.ts'
import { checkEvent, wants } from './store/endpoint.ts'
import type { WebhookEndpoints } from './store/endpoints.ts'

export interface PublishOptions {
  /** Publishing again with the same key and tenant makes no second delivery, as long as deliveries are kept. */
  readonly key?: string
  /** Only endpoints of this tenant get the event. Default: those without a tenant. */
  readonly tenant?: Tenant
  /** Your own transaction: the deliveries commit with it or not at all. */
  readonly within?: Transaction
  /** More headers of the requests. */
  readonly headers?: Readonly<Record<string, string>>
}

const PUBLISH_NAMES: OptionNames<PublishOptions> = { key: true, tenant: true, within: true, headers: true }

export interface PublishedDelivery {
  readonly webhookId: string
  readonly deliveryId: string
  /** The same as the delivery's, except for a redelivery. */
  readonly jobId: string
}

export interface Published {
  readonly deliveries: readonly PublishedDelivery[]
  /** The event was published before with the same key; these are its deliveries. */
  readonly isDuplicate: boolean
  /** Endpoints that want the event and are disabled. They get nothing. */
  readonly disabled: readonly string[]
}

export interface PublisherParts {
  readonly mill: Mill
  readonly job: AnyJob
  readonly database: WorkloadDatabase
  readonly endpoints: WebhookEndpoints
  readonly clock: Clock
}

const CLAIM_KEY = `INSERT INTO {webhook_publications} (tenant, publication_key, event, deliveries, at)
VALUES ($1, $2, $3, '[]', $4) ON CONFLICT (tenant, publication_key) DO NOTHING RETURNING publication_key`
const READ_KEY = 'SELECT event, deliveries FROM {webhook_publications} WHERE tenant = $1 AND publication_key = $2'
const FORGET_KEY = 'DELETE FROM {webhook_publications} WHERE tenant = $1 AND publication_key = $2'

/** On SQLite these block the event loop for some milliseconds. Ten thousand at once would block it for half a second. */
const ENQUEUED_AT_ONCE = 250

export class Publisher {
  readonly #parts: PublisherParts

  constructor(parts: PublisherParts) {
    this.#parts = parts
  }

  async publish(event: string, payload: unknown, options: PublishOptions = {}): Promise<Published> {
    refuseUnknown(options, PUBLISH_NAMES, 'publish')
    checkEvent(event)
    if (options.key !== undefined) checkKey(options.key, 'key')
    if (options.tenant !== undefined) checkTenant(options.tenant)
    const { database } = this.#parts
    const { within } = options
    const run = (transaction: WorkloadTransaction): Promise<Published> =>
      this.#publish({ event, payload, options, transaction })
    return within === undefined ? database.transaction(run) : run({ ...database.on(within), within })
  }

  async #publish(publication: Publication): Promise<Published> {
    const before = await this.#earlier(publication)
    if (before !== null) return { deliveries: before, isDuplicate: true, disabled: [] }
    try {
      return await this.#fanOut(publication)
    } catch (error) {
      await this.#forget(publication)
      throw error
    }
  }

  async #fanOut(publication: Publication): Promise<Published> {
    const { event, payload, options, transaction } = publication
    const { endpoints, clock } = this.#parts
    const wanting = (await endpoints.of(options.tenant ?? null, transaction)).filter((one) => wants(one.events, event))
    const enabled = wanting.filter(({ isEnabled }) => isEnabled)
    // The shape that Standard Webhooks recommends.
    const body = { type: event, timestamp: toIso(clock.nowMs()), data: payload }
    const payloadFor = (webhookId: string): WebhookDispatchData => ({
      ...{ webhookId, payload: body as WebhookDispatchData['payload'], event },
      ...(options.headers !== undefined && { headers: options.headers }),
    })
    const payloads = enabled.map(({ id }) => payloadFor(id))
    // A mistake must not wait for the first endpoint that wants the event.
    if (payloads.length === 0) await this.#prepare([payloadFor('none')])
    const given = { within: transaction.within, ...(options.tenant !== undefined && { tenant: options.tenant }) }
    const deliveries: PublishedDelivery[] = []
    for (let from = 0; from < payloads.length; from += ENQUEUED_AT_ONCE) {
      // Not within the caller's transaction, where other code could run statements meanwhile.
      if (from > 0 && options.within === undefined) await new Promise((resolve) => setImmediate(resolve))
      deliveries.push(...(await this.enqueue(payloads.slice(from, from + ENQUEUED_AT_ONCE), given)))
    }
    if (options.key !== undefined) await this.#remember(publication, deliveries)
    const disabled = wanting.filter(({ isEnabled }) => !isEnabled).map(({ id }) => id)
    return { deliveries, isDuplicate: false, disabled }
  }

  /**
   * The payload carries the delivery's id, which is the job's. So it survives a retry of a dead letter as another job.
   */
  async enqueue(
    payloads: readonly WebhookDispatchData[],
    { within, tenant }: { readonly within?: Transaction; readonly tenant?: Tenant },
  ): Promise<readonly PublishedDelivery[]> {
    const { mill } = this.#parts
    const prepared = await this.#prepare(payloads, tenant)
    const deliveries = prepared.map(({ id }, at) => {
      const { webhookId = '', deliveryId = id } = payloads[at] ?? {}
      return { webhookId, deliveryId, jobId: id }
    })
    const jobs = prepared.map((one, at): NewJob => {
      const data = { ...JSON.parse(one.payload), deliveryId: deliveries[at]?.deliveryId }
      return { ...one, payload: JSON.stringify(data) }
    })
    const store = (traced: readonly NewJob[]) => mill.engine.enqueue(traced, within)
    await (mill.tracing.tracer?.enqueue(jobs, store) ?? store(jobs))
    for (const { id, type, payload } of jobs) {
      mill.events.emit('job.enqueued', { id, type, status: 'enqueued', bytes: Buffer.byteLength(payload) })
    }
    return deliveries
  }

  #prepare(payloads: readonly WebhookDispatchData[], tenant?: Tenant): Promise<readonly NewJob[]> {
    const { mill, job, clock } = this.#parts
    const preparation = { engine: mill.engine, nowMs: clock.nowMs(), payloadBytesMax: PAYLOAD_BYTES_MAX_DEFAULT }
    return prepareJobs(preparation, job, payloads, tenant === undefined ? {} : { tenant })
  }

  /** The deliveries of the same key, if it was used before. Otherwise the key is taken. */
  async #earlier({ event, options, transaction }: Publication): Promise<readonly PublishedDelivery[] | null> {
    if (options.key === undefined) return null
    const place = [tenantText(options.tenant), options.key]
    const now = toIso(this.#parts.clock.nowMs())
    if ((await transaction.rows(CLAIM_KEY, [...place, event, now])).length > 0) return null
    const [row] = await transaction.rows(READ_KEY, place)
    if (row === undefined) return []
    if (row.event !== event) {
      throw new OptionError(`the key was used for the event '${String(row.event)}'; give another key for '${event}'`)
    }
    // Written by #remember.
    return jsonOf(row, 'deliveries') as readonly PublishedDelivery[]
  }

  /** The caller may commit its own transaction nevertheless, and the key would stay without deliveries. */
  async #forget({ options, transaction }: Publication): Promise<void> {
    if (options.key === undefined || options.within === undefined) return
    const place = [tenantText(options.tenant), options.key]
    // It fails only in a transaction that cannot commit, which forgets the key too.
    await transaction.rows(FORGET_KEY, place).catch(() => [])
  }

  async #remember({ options, transaction }: Publication, deliveries: readonly PublishedDelivery[]): Promise<void> {
    const { json } = transaction.dialect
    await transaction.rows(
      `UPDATE {webhook_publications} SET deliveries = ${json('$3')} WHERE tenant = $1 AND publication_key = $2`,
      [tenantText(options.tenant), options.key ?? '', JSON.stringify(deliveries)],
    )
  }
}

interface Publication {
  readonly event: string
  readonly payload: unknown
  readonly options: PublishOptions
  readonly transaction: Queries & { readonly within: Transaction }
}

function tenantText(tenant: Tenant | undefined): string {
  return tenant === undefined ? '' : JSON.stringify([tenant.orgId, tenant.workspaceId ?? null])
}
