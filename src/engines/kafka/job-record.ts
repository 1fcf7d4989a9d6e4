import type { NewJob, StoredJob, StoredOptions, Tenant } from '../../job/job.ts'
import { originOf, REPLAY_HEADERS } from './dead-letters/headers.ts'
import {
  type Coordinates,
  HeaderNames,
  headerText,
  type LogRecord,
  type NewRecord,
  type RecordHeaders,
  textOf,
} from './record.ts'

/** Where a record stands, as one word: also the id of a job that another producer wrote. */
export function coordinatesOf(record: Coordinates & Pick<LogRecord, 'coordinates'>): string {
  return record.coordinates ?? `${record.topic}:${record.partition}:${record.offset}`
}

/** Kafka's rule for topic names. */
const TOPIC = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$/

/** A type is the name of its topic, so not every type can live here. */
export function isTopic(type: string): boolean {
  return TOPIC.test(type)
}

/** Starts in total, where neither the record nor its worker says otherwise. */
const ATTEMPTS_DEFAULT = 3
const PRIORITY_DEFAULT = 5
const PAYLOAD_VERSION_DEFAULT = 1

/** The names of our headers. All are optional: a record without any is a job too. */
export const HEADERS = Object.freeze({
  id: 'millrace-id',
  payloadVersion: 'millrace-payload-version',
  priority: 'millrace-priority',
  attempts: 'millrace-attempts',
  tenant: 'millrace-tenant',
  options: 'millrace-options',
  /** Tells a key that was given from one that we made up to spread jobs over the partitions. */
  key: 'millrace-key',
})

/** Headers that are read of every record, whichever program wrote it. */
const READ = new HeaderNames([
  HEADERS.id,
  HEADERS.payloadVersion,
  HEADERS.priority,
  HEADERS.attempts,
  HEADERS.key,
  HEADERS.tenant,
  HEADERS.options,
  'traceparent',
  'tracestate',
  REPLAY_HEADERS.origin,
  REPLAY_HEADERS.group,
])

/** In the order of `READ`; by their places, because taking a list apart makes an object for each. */
function textsOf(headers: RecordHeaders): readonly (string | null)[] {
  return headers.texts?.(READ) ?? READ.names.map((name) => headerText(headers, name))
}

/** The one group that is to handle a replayed record, if there is one. */
export function targetGroupOf({ headers }: LogRecord): string | null {
  return textsOf(headers)[10] ?? null
}

export function toRecord(job: NewJob, prefix = ''): NewRecord {
  const headers = new Map<string, Buffer>([
    [HEADERS.id, Buffer.from(job.id)],
    [HEADERS.attempts, Buffer.from(String(job.attempts))],
  ])
  // What a record without the header is taken for anyhow is not worth its bytes.
  if (job.payloadVersion !== PAYLOAD_VERSION_DEFAULT) {
    headers.set(HEADERS.payloadVersion, Buffer.from(String(job.payloadVersion)))
  }
  if (job.priority !== PRIORITY_DEFAULT) headers.set(HEADERS.priority, Buffer.from(String(job.priority)))
  if (job.tenant !== null) headers.set(HEADERS.tenant, Buffer.from(JSON.stringify(job.tenant)))
  if (job.options !== null) headers.set(HEADERS.options, Buffer.from(JSON.stringify(job.options)))
  for (const [name, value] of Object.entries(job.options?.trace ?? {})) headers.set(name, Buffer.from(value))
  if (job.key !== null) headers.set(HEADERS.key, Buffer.from(job.key))
  return {
    topic: prefix + job.type,
    key: job.key === null ? null : Buffer.from(job.key),
    value: Buffer.from(job.payload),
    headers,
  }
}

/** What a record says as a job. `verdict`: it can never run, and why; then the payload is `null`. */
export interface ReadJob {
  readonly job: StoredJob
  readonly verdict: string | null
}

/**
 * A class, because V8 counts how many objects of a literal survive: a few hundred that wait while a worker starts, and all
 * later ones are made among its old objects, where they keep their texts alive too.
 */
class RecordJob implements StoredJob {
  readonly id: string
  readonly type: string
  readonly payload: string
  readonly payloadVersion: number
  readonly priority: number
  readonly attempts: number
  readonly createdAtMs: number
  readonly runAtMs: number
  readonly key: string | null
  readonly latestKey = null
  readonly tenant: Tenant | null
  readonly options: StoredOptions | null
  readonly after = null

  constructor(record: LogRecord, payload: string, prefix: string, attempts: number) {
    const texts = textsOf(record.headers)
    const id = texts[0] ?? null
    // A record that was replayed is the job that it was: it goes by the place where it first stood.
    this.id = id ?? originOf(texts[9] ?? null)?.replaceAll('/', ':') ?? coordinatesOf(record)
    this.type = prefix === '' ? record.topic : record.topic.slice(prefix.length)
    this.payload = payload
    this.payloadVersion = whole(texts[1]) ?? PAYLOAD_VERSION_DEFAULT
    this.priority = whole(texts[2]) ?? PRIORITY_DEFAULT
    this.attempts = whole(texts[3]) ?? attempts
    this.createdAtMs = record.timestampMs
    this.runAtMs = record.timestampMs
    this.key = texts[4] ?? (id === null && record.key !== null ? textOf(record.key) : null)
    this.tenant = tenantOf(texts[5])
    this.options = optionsOf(texts[6], texts[7], texts[8])
  }
}

/** Never throws: whatever cannot be read is a job with a verdict, so that it ends as a dead letter and blocks no others. */
export function toJob(record: LogRecord, prefix = '', attempts = ATTEMPTS_DEFAULT): ReadJob {
  const payload = payloadOf(record)
  const job = new RecordJob(record, payload ?? 'null', prefix, attempts)
  const verdict = payload === null ? `the value of ${record.value?.length ?? 0} bytes is no UTF-8 text` : null
  return { job, verdict }
}

/**
 * Null for what is no text. A record without a value is a job with the payload `null`. Whether text is JSON the worker
 * finds out, as everywhere.
 */
function payloadOf(record: LogRecord): string | null {
  if (record.valueText !== undefined) return record.valueText()
  return record.value === null ? 'null' : textOf(record.value)
}

/** Of a header; there may be none. */
type Text = string | null | undefined

function whole(text: Text): number | null {
  const value = typeof text !== 'string' || text === '' ? Number.NaN : Number(text)
  return Number.isSafeInteger(value) && value > 0 ? value : null
}

function objectOf(text: Text): object | null {
  if (typeof text !== 'string') return null
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

function tenantOf(text: Text): Tenant | null {
  const value = objectOf(text)
  const orgId: unknown = value === null ? undefined : Reflect.get(value, 'orgId')
  const workspaceId: unknown = value === null ? undefined : Reflect.get(value, 'workspaceId')
  if (typeof orgId !== 'string') return null
  return typeof workspaceId === 'string' ? { orgId, workspaceId } : { orgId }
}

/** Other programs that trace say so in the headers that W3C Trace Context names, and so do we besides. */
function optionsOf(text: Text, traceparent: Text, tracestate: Text): StoredOptions | null {
  const options: StoredOptions | null = objectOf(text)
  if (typeof traceparent !== 'string') return options
  return { ...options, trace: typeof tracestate === 'string' ? { traceparent, tracestate } : { traceparent } }
}
