import type { NewJob, StoredJob, StoredOptions, Tenant } from '../../job/job.ts'
import { REPLAY_HEADERS } from './dead-letters/headers.ts'
import { type Coordinates, type LogRecord, type NewRecord, textOf } from './dead-letters/record.ts'

/** Where a record stands, as one word: also the id of a job that another producer wrote. */
export function coordinatesOf(record: Coordinates): string {
  return `${record.topic}:${record.partition}:${record.offset}`
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

/** Never throws: whatever cannot be read is a job with a verdict, so that it ends as a dead letter and blocks nobody. */
export function toJob(record: LogRecord, prefix = '', attempts = ATTEMPTS_DEFAULT): ReadJob {
  const payload = payloadOf(record)
  const id = textHeader(record, HEADERS.id)
  const job: StoredJob = {
    id: id ?? originOf(record) ?? coordinatesOf(record),
    type: record.topic.slice(prefix.length),
    payload: payload.text ?? 'null',
    payloadVersion: whole(textHeader(record, HEADERS.payloadVersion)) ?? PAYLOAD_VERSION_DEFAULT,
    priority: whole(textHeader(record, HEADERS.priority)) ?? PRIORITY_DEFAULT,
    attempts: whole(textHeader(record, HEADERS.attempts)) ?? attempts,
    createdAtMs: record.timestampMs,
    runAtMs: record.timestampMs,
    key: textHeader(record, HEADERS.key) ?? (id !== undefined || record.key === null ? null : textOf(record.key)),
    latestKey: null,
    tenant: tenantOf(textHeader(record, HEADERS.tenant)),
    options: optionsOf(record),
    after: null,
  }
  return { job, verdict: payload.verdict }
}

/** A record that was replayed is the job that it was: it goes by the place where it first stood. */
function originOf(record: LogRecord): string | null {
  const origin = textHeader(record, REPLAY_HEADERS.origin)
  return origin !== undefined && /^[^/]+\/\d+\/\d+$/.test(origin) ? origin.replaceAll('/', ':') : null
}

/** A record without a value is a job with the payload `null`. Whether text is JSON the worker finds out, as everywhere. */
function payloadOf({ value }: LogRecord): { readonly text: string | null; readonly verdict: string | null } {
  if (value === null) return { text: 'null', verdict: null }
  const text = textOf(value)
  return { text, verdict: text === null ? `the value of ${value.length} bytes is no UTF-8 text` : null }
}

/** A header that is no text is somebody else's. */
function textHeader({ headers }: LogRecord, name: string): string | undefined {
  const value = headers.get(name)
  return value === undefined ? undefined : (textOf(value) ?? undefined)
}

function whole(text: string | undefined): number | null {
  const value = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isSafeInteger(value) && value > 0 ? value : null
}

function objectOf(text: string | undefined): object | null {
  if (text === undefined) return null
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

function tenantOf(text: string | undefined): Tenant | null {
  const value = objectOf(text)
  const orgId: unknown = value === null ? undefined : Reflect.get(value, 'orgId')
  const workspaceId: unknown = value === null ? undefined : Reflect.get(value, 'workspaceId')
  if (typeof orgId !== 'string') return null
  return typeof workspaceId === 'string' ? { orgId, workspaceId } : { orgId }
}

/** Other programs that trace say so in the headers that W3C Trace Context names, and so do we besides. */
function optionsOf(record: LogRecord): StoredOptions | null {
  const options: StoredOptions | null = objectOf(textHeader(record, HEADERS.options))
  const traceparent = textHeader(record, 'traceparent')
  if (traceparent === undefined) return options
  const tracestate = textHeader(record, 'tracestate')
  return { ...options, trace: tracestate === undefined ? { traceparent } : { traceparent, tracestate } }
}

/** The lane of a record: its key's bytes, one by one, so that keys that are no text stay apart. */
export function laneOf({ key }: LogRecord): string | null {
  return key === null ? null : key.toString('latin1')
}
