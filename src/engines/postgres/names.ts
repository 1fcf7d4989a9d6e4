import { createHash } from 'node:crypto'
import { EngineError } from '../../errors.ts'

/** The one way by which a name gets into a statement. */
export function quote(name: string): string {
  if (name === '' || name.includes('\0') || Buffer.byteLength(name) > NAME_BYTES_MAX) {
    throw new EngineError('ERR_ENGINE_URL', `'${name}' cannot be a name in Postgres; give 1 to ${NAME_BYTES_MAX} bytes`)
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** Text as a constant of a statement. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** Postgres cuts longer names in silence, and two that begin alike would become one. */
const NAME_BYTES_MAX = 63

/** The tables of one schema, quoted and qualified: `search_path` decides nothing. */
export interface Names {
  /** As it is, not quoted. */
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
  readonly outbox: string
  readonly audit: string
  readonly versions: string
  /** How the columns were declared: text, unless the table was there before us. */
  readonly idType: string
  readonly payloadType: string
  readonly eventIdType: string
  /** Where NOTIFY tells the processes of this schema of each other. */
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
    outbox: table('millrace_outbox'),
    audit: table('millrace_audit'),
    versions: table('millrace_schema'),
    idType: types.idType ?? 'text',
    payloadType: types.payloadType ?? 'text',
    eventIdType: types.eventIdType ?? 'text',
    channel: channelOf(schema),
  }
}

/** Anyone may notify `millrace:<schema>`. A longer name than the server takes would make every NOTIFY fail. */
function channelOf(schema: string): string {
  const name = `millrace:${schema}`
  if (Buffer.byteLength(name) <= NAME_BYTES_MAX) return name
  return `millrace:${createHash('sha1').update(schema).digest('hex')}`
}
