/** Webhooks, assembled: the tables, the guarded client, the worker and a mill on one database. */
import { type Mill, open } from '../../src/client/mill.ts'
import type { Log } from '../../src/job/definition.ts'
import { type OptionNames, omitUndefined, refuseUnknown } from '../../src/job/known-options.ts'
import { type Duty, startDuties } from '../../src/keeper/side-duties.ts'
import { silentLog } from '../../src/observe/log.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type Duration, parseDurationMs } from '../../src/time/duration.ts'
import type { WorkerOptions } from '../../src/worker/options.ts'
import type { Worker } from '../../src/worker/worker.ts'
import { openDatabase, type WorkloadDatabase } from '../database/database.ts'
import { type DispatchOptions, WebhookDispatchWorker } from './dispatch-worker.ts'
import { type Published, type PublishedDelivery, Publisher, type PublishOptions } from './publish.ts'
import { redeliver } from './redeliver.ts'
import { USER_AGENT } from './request.ts'
import { type GuardedHttp, type GuardedHttpOptions, guardedHttp } from './sending/guarded-http.ts'
import {
  type DeliveryFilter,
  listDeliveries,
  type Removed,
  removeOlder,
  type WebhookDelivery,
} from './store/deliveries.ts'
import { unknownEndpoint, WebhookEndpoints } from './store/endpoints.ts'
import { WebhookRepository } from './store/repository.ts'
import { webhooksSchema } from './store/schema.ts'
import { sendTest, type TestResult } from './test-event.ts'

/** What a configuration file can have too. */
export interface WebhooksSettings {
  /** Origins that may be plain http or have a private address, such as `http://127.0.0.1:8080`. Default: none. */
  readonly allow?: readonly string[]
  /** Jobs at once in one process. Default: 20. */
  readonly concurrency?: number
  /** Default: 100 starts per 1000 ms over all workers. Null: no limit. */
  readonly limiter?: DispatchOptions['limiter']
  /** Default: RuvBot-Webhook/1.0. */
  readonly userAgent?: string
  /** How long completed jobs, records of deliveries, and keys of published events are kept. Default: 30d. */
  readonly retention?: Duration
}

export interface WebhooksOptions extends WebhooksSettings, Pick<GuardedHttpOptions, 'resolve' | 'ca'> {
  /** A `sqlite:` or `postgres:` URL, for the jobs and the tables. Default: sqlite:./millrace.db. */
  readonly engine?: string
  /** A mill that is open on the same database already. It stays open. Default: a new one. */
  readonly mill?: Mill
  /** Create or update the tables. Default: true for SQLite, false for Postgres. */
  readonly migrate?: boolean
  /** Refuse to create a SQLite file. Default: false. */
  readonly mustExist?: boolean
  readonly clock?: Clock
  /** Default: nothing is logged. */
  readonly log?: Log
  readonly metrics?: DispatchOptions['metrics']
}

export const WEBHOOKS_ENGINE = 'sqlite:./millrace.db'
export const RETENTION_DEFAULT = '30d'
const RETENTION_EVERY = '1h'

const SETTING_NAMES: OptionNames<WebhooksSettings> = {
  ...{ allow: true, concurrency: true, limiter: true, userAgent: true, retention: true },
}
const OPTION_NAMES: OptionNames<WebhooksOptions> = {
  ...SETTING_NAMES,
  ...{
    engine: true,
    mill: true,
    migrate: true,
    mustExist: true,
    clock: true,
    log: true,
    metrics: true,
    resolve: true,
    ca: true,
  },
}

export interface Webhooks {
  readonly mill: Mill
  readonly worker: WebhookDispatchWorker
  /** For `mill.work`. */
  readonly jobs: readonly [WebhookDispatchWorker['definition']]
  readonly endpoints: WebhookEndpoints
  readonly repository: WebhookRepository
  /** Starts a worker and removes old deliveries every hour, until `close`. */
  work(options?: WorkerOptions): Promise<Worker>
  /** Enqueues a delivery to each enabled endpoint that wants the event, in one transaction. */
  publish(event: string, payload: unknown, options?: PublishOptions): Promise<Published>
  /** Attempts of deliveries, the latest first. */
  deliveries(filter?: DeliveryFilter): Promise<readonly WebhookDelivery[]>
  /** Sends a delivery again, with its id, as a new job. One of its jobs must still be stored. */
  redeliver(deliveryId: string): Promise<PublishedDelivery>
  /** Sends a signed `webhook.test` event now, also to a disabled endpoint. */
  test(webhookId: string): Promise<TestResult>
  /** Removes what is older than the retention. */
  retain(): Promise<Removed>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Opens webhooks on a database: endpoints, deliveries and the jobs that send them.
 *
 * @example
 * const webhooks = await openWebhooks({ engine: 'sqlite:./app.db' })
 * const { secret } = await webhooks.endpoints.add({ url: 'https://example.com/hooks', events: ['order.*'] })
 * await webhooks.work()
 * await webhooks.publish('order.paid', { orderId: 7 })
 */
export async function openWebhooks(options: WebhooksOptions = {}): Promise<Webhooks> {
  refuseUnknown(options, OPTION_NAMES, 'openWebhooks')
  const { engine = WEBHOOKS_ENGINE, clock = systemClock, log = silentLog, allow, resolve, ca } = options
  const retentionMs = parseDurationMs(options.retention ?? RETENTION_DEFAULT, 'retention')
  const http = guardedHttp(omitUndefined({ allow, resolve, ca, clock }))
  const database = await openDatabase(engine, {
    ...{ schemas: [webhooksSchema], clock, mustExist: options.mustExist ?? false, usesIndexes: true },
    ...migrateOf(options),
  })
  const repository = new WebhookRepository(database, { clock })
  const { concurrency, limiter, userAgent, metrics } = options
  try {
    const worker = new WebhookDispatchWorker(
      http,
      repository,
      omitUndefined({ concurrency, limiter, userAgent, metrics, log, clock }),
    )
    const mill = options.mill ?? (await open(engine, { jobs: [worker.definition], clock, log, ...migrateOf(options) }))
    const parts = { http, database, repository, worker, mill, clock, log, retentionMs }
    return assembled({ ...parts, userAgent: userAgent ?? USER_AGENT, ownsMill: options.mill === undefined })
  } catch (error) {
    await database.close()
    throw error
  }
}

function migrateOf({ migrate }: WebhooksOptions) {
  return migrate === undefined ? {} : { migrate }
}

interface Parts {
  readonly http: GuardedHttp
  readonly database: WorkloadDatabase
  readonly repository: WebhookRepository
  readonly worker: WebhookDispatchWorker
  readonly mill: Mill
  readonly ownsMill: boolean
  readonly userAgent: string
  readonly retentionMs: number
  readonly clock: Clock
  readonly log: Log
}

function assembled(parts: Parts): Webhooks {
  const { http, database, repository, worker, mill, clock, log, retentionMs } = parts
  const endpoints = new WebhookEndpoints(database, { checkUrl: (url) => http.check(url), clock })
  // A redelivery takes the payload from the job.
  const kept = { completed: retentionMs, ended: retentionMs }
  const job = { ...worker.definition, retention: { ...worker.definition.retention, ...kept } }
  const publisher = new Publisher({ mill, job, database, endpoints, clock })
  const retain = (): Promise<Removed> => removeOlder(database, clock.nowMs() - retentionMs)
  let stopDuties: (() => Promise<void>) | null = null
  let closing: Promise<void> | null = null
  const close = (): Promise<void> => {
    closing ??= (async () => {
      // The last first, also where one fails.
      await using ends = new AsyncDisposableStack()
      ends.defer(() => database.close())
      ends.defer(() => http.close())
      ends.defer(() => repository.idle())
      if (parts.ownsMill) ends.use(mill)
      ends.defer(() => stopDuties?.())
    })()
    return closing
  }
  return {
    ...{ mill, worker, jobs: [job], endpoints, repository, retain, close, [Symbol.asyncDispose]: close },
    async work(workerOptions) {
      const started = await mill.work([job], workerOptions)
      stopDuties ??= startDuties([retentionDuty(retain, log)], { clock, log })
      return started
    },
    publish: (event, payload, options) => publisher.publish(event, payload, options),
    deliveries: (filter) => listDeliveries(database, filter),
    redeliver: (deliveryId) => redeliver(deliveryId, { mill, publisher, database }),
    async test(webhookId) {
      const webhook = await repository.findById(webhookId)
      if (webhook === null) throw unknownEndpoint(webhookId)
      return sendTest({ ...webhook, id: webhookId }, parts)
    },
  }
}

/** Removes old records. Run it beside the jobs. */
export function retentionDuty(retain: () => Promise<Removed>, log: Log): Duty {
  return {
    name: 'webhook-retention',
    every: RETENTION_EVERY,
    async run() {
      const { deliveries, publications } = await retain()
      if (deliveries + publications > 0) log.info('Old deliveries removed', { deliveries, publications })
    },
  }
}
