import { createHash } from 'node:crypto'
import { EngineError } from '../../errors.ts'

/** Every name in a statement passes through here. */
export function quote(name: string): string {
  if (name === '' || name.includes('\0') || Buffer.byteLength(name) > NAME_BYTES_MAX) {
    throw new EngineError('ERR_ENGINE_URL', `'${name}' cannot be a name in Postgres; give 1 to ${NAME_BYTES_MAX} bytes`)
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** A text literal. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** Postgres silently truncates longer names, so two with the same beginning would become one. */
const NAME_BYTES_MAX = 63

/** The tables of one schema, quoted and qualified, so that `search_path` does not matter. */
export interface Names {
  /** Not quoted. */
  readonly schema: string
  readonly jobs: string
  readonly arrivals: string
  readonly events: string
  readonly eventNumbers: string
  readonly latest: string
  readonly limits: string
  readonly edges: string
  readonly schedules: string
  readonly leaders: string
  readonly presence: string
  readonly pauses: string
  readonly records: string
  readonly outbox: string
  readonly tags: string
  readonly audit: string
  readonly logs: string
  readonly versions: string
  /** The declared types of the columns: text, unless the table is older than Millrace. */
  readonly idType: string
  readonly payloadType: string
  readonly eventIdType: string
  /** The NOTIFY channel of the processes of this schema. */
  readonly channel: string
}

export type ColumnTypes = Pick<Names, 'idType' | 'payloadType' | 'eventIdType'>

export function namesIn(schema: string, types: Partial<ColumnTypes> = {}): Names {
  const table = (name: string): string => `${quote(schema)}.${quote(name)}`
  return {
    schema,
    jobs: table('jobs'),
    arrivals: table('millrace_arrivals'),
    events: table('job_events'),
    eventNumbers: table('millrace_event_numbers'),
    latest: table('millrace_latest'),
    limits: table('millrace_limits'),
    edges: table('millrace_edges'),
    schedules: table('millrace_schedules'),
    leaders: table('millrace_leaders'),
    presence: table('millrace_presence'),
    pauses: table('millrace_pauses'),
    records: table('millrace_records'),
    outbox: table('millrace_outbox'),
    tags: table('millrace_tags'),
    audit: table('millrace_audit'),
    logs: table('millrace_logs'),
    versions: table('millrace_schema'),
    idType: types.idType ?? 'text',
    payloadType: types.payloadType ?? 'text',
    eventIdType: types.eventIdType ?? 'text',
    channel: channelOf(schema),
  }
}

/** Any program may notify `millrace:<schema>`. A name longer than the server allows would make every NOTIFY fail. */
function channelOf(schema: string): string {
  const name = `millrace:${schema}`
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name
  return `millrace:${createHash('sha1').update(schema).digest('hex')}`
}
