import { type NewJob, plainJob, type StoredJob, type StoredOptions, type Tenant } from '../../job/job.ts'
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
/** Their places in it. */
const [ID, VERSION, PRIORITY, ATTEMPTS, KEY, TENANT, OPTIONS, TRACEPARENT, TRACESTATE, ORIGIN, GROUP] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
]

/** Which headers of `READ` there are, a bit for each. */
function foundIn(headers: RecordHeaders): number {
  if (headers.found !== undefined) return headers.found(READ)
  return READ.names.reduce((found, name, place) => found | (headers.get(name) === undefined ? 0 : 1 << place), 0)
}

/** Null for one that is not among those found, which most are not. */
function textOfFound(headers: RecordHeaders, found: number, place: number): string | null {
  if ((found & (1 << place)) === 0) return null
  return headers.textAt === undefined ? headerText(headers, READ.names[place] ?? '') : headers.textAt(READ, place)
}

function textIn(headers: RecordHeaders, place: number): string | null {
  return textOfFound(headers, foundIn(headers), place)
}

/** The one group that is to handle a replayed record, if there is one. */
export function targetGroupOf({ headers }: LogRecord): string | null {
  return textIn(headers, GROUP)
}

/** A record that was replayed is the job that it was: it goes by the place where it first stood. */
export function jobIdOf(record: LogRecord): string {
  const { headers } = record
  return textIn(headers, ID) ?? originOf(textIn(headers, ORIGIN))?.replaceAll('/', ':') ?? coordinatesOf(record)
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

/**
 * A record as a job. What every start needs is read at once, and the rest when it is asked for: most handlers look at nothing
 * but their payload. Never throws: whatever cannot be read is a job with a verdict, so that it ends as a dead letter and
 * blocks no others.
 *
 * A class, because V8 counts how many objects of a literal survive: a few hundred that wait while a worker starts, and all
 * later ones are made among its old objects, where they keep their texts alive too.
 */
export class RecordJob implements StoredJob {
  readonly type: string
  readonly payload: string
  readonly payloadVersion: number
  readonly createdAtMs: number
  readonly runAtMs: number
  readonly latestKey = null
  readonly options: StoredOptions | null
  readonly after = null
  readonly #record: LogRecord
  readonly #found: number
  readonly #isText: boolean
  readonly #attempts: number
  #id: string | null = null

  /** `attempts`: where the record does not say. */
  constructor(record: LogRecord, type: string, attempts = ATTEMPTS_DEFAULT) {
    const { headers, timestampMs } = record
    const payload = payloadOf(record)
    const found = foundIn(headers)
    this.type = type
    this.payload = payload ?? 'null'
    this.payloadVersion = whole(textOfFound(headers, found, VERSION)) ?? PAYLOAD_VERSION_DEFAULT
    this.createdAtMs = timestampMs
    this.runAtMs = timestampMs
    this.options = optionsOf(headers, found)
    this.#record = record
    this.#found = found
    this.#isText = payload !== null
    this.#attempts = attempts
  }

  get id(): string {
    this.#id ??= jobIdOf(this.#record)
    return this.#id
  }

  get priority(): number {
    return whole(this.#text(PRIORITY)) ?? PRIORITY_DEFAULT
  }

  get attempts(): number {
    return whole(this.#text(ATTEMPTS)) ?? this.#attempts
  }

  get tenant(): Tenant | null {
    return tenantOf(this.#text(TENANT))
  }

  /** The key of a record that we wrote may be made up; its header says which was given. */
  get key(): string | null {
    const { key } = this.#record
    return this.#text(KEY) ?? (key !== null && this.#text(ID) === null ? textOf(key) : null)
  }

  /** It can never run, and why; then the payload is `null`. */
  get verdict(): string | null {
    return this.#isText ? null : `the value of ${this.#record.value?.length ?? 0} bytes is no UTF-8 text`
  }

  #text(place: number): string | null {
    return textOfFound(this.#record.headers, this.#found, place)
  }
}

/** What a record says as a job, all of it read. `verdict`: it can never run, and why. */
export interface ReadJob {
  readonly job: StoredJob
  readonly verdict: string | null
}

export function toJob(record: LogRecord, prefix = '', attempts = ATTEMPTS_DEFAULT): ReadJob {
  const job = new RecordJob(record, record.topic.slice(prefix.length), attempts)
  return { job: plainJob(job), verdict: job.verdict }
}

/**
 * Null for what is no text. A record without a value is a job with the payload `null`. Whether text is JSON the worker
 * finds out, as everywhere.
 */
function payloadOf(record: LogRecord): string | null {
  if (record.valueText !== undefined) return record.valueText()
  return record.value === null ? 'null' : textOf(record.value)
}

function whole(text: string | null): number | null {
  const value = text === null || text === '' ? Number.NaN : Number(text)
  return Number.isSafeInteger(value) && value > 0 ? value : null
}

function objectOf(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

function tenantOf(text: string | null): Tenant | null {
  const value = text === null ? null : objectOf(text)
  if (value === null) return null
  const orgId: unknown = Reflect.get(value, 'orgId')
  const workspaceId: unknown = Reflect.get(value, 'workspaceId')
  if (typeof orgId !== 'string') return null
  return typeof workspaceId === 'string' ? { orgId, workspaceId } : { orgId }
}

/** Other programs that trace say so in the headers that W3C Trace Context names, and so do we besides. */
function optionsOf(headers: RecordHeaders, found: number): StoredOptions | null {
  const text = textOfFound(headers, found, OPTIONS)
  const options: StoredOptions | null = text === null ? null : objectOf(text)
  const traceparent = textOfFound(headers, found, TRACEPARENT)
  if (traceparent === null) return options
  const tracestate = textOfFound(headers, found, TRACESTATE)
  return { ...options, trace: tracestate === null ? { traceparent } : { traceparent, tracestate } }
}
