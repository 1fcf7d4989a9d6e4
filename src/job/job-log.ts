/** What handlers say (`log.info` …), as it is kept with their jobs. */
import { inspect } from 'node:util'
import { isError } from '../errors.ts'
import type { Log } from './definition.ts'
import { clip, type Redactor } from './error-record.ts'
import { Redaction } from './redaction.ts'
import { isRecord, parseOrText } from './stored-json.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly (keyof Log)[]
export type LogLevel = (typeof LOG_LEVELS)[number]

/** The newest lines of a job that are kept unless its worker says otherwise, and the most that one may ask for. */
export const LOG_LINES_DEFAULT = 200
export const LOG_LINES_MAX = 1_000
/** The newest bytes of a job that are kept. */
export const LOG_BYTES_MAX = 65_536
/** A line that is longer is cut. */
const MESSAGE_LENGTH_MAX = 4_000
const FIELDS_LENGTH_MAX = 4_000

export interface LogLine {
  /** Counts every line of the job from 1, also those that were dropped. */
  readonly seq: number
  /** By the clock of the worker. */
  readonly atMs: number
  readonly level: LogLevel
  readonly attempt: number
  readonly worker: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | null
}

/** The lines of a job that are kept, oldest first, and how many others it said. */
export interface JobLog {
  readonly lines: readonly LogLine[]
  readonly dropped: number
}

type Said = Omit<LogLine, 'seq' | 'fields'> & { readonly fields: Readonly<Record<string, unknown>> | undefined }

const byName = new Redaction([])
const WITHHELD = 'the text of this line was withheld: it could not be redacted'

/**
 * A line as engines store it: JSON text, so that every store can keep any character. What is named like a secret is removed
 * from the fields, and the redactor sees every text. It never throws: a line must not fail the job that says it.
 */
export function encodeLine({ atMs, level, attempt, worker, message, fields }: Said, redactor: Redactor): string {
  const head = { at: atMs, level, attempt, worker }
  try {
    const text = clip(redactor(clip(String(message), MESSAGE_LENGTH_MAX * 4)), MESSAGE_LENGTH_MAX)
    const more = fields === undefined ? undefined : fieldsText(fields, redactor)
    if (more === undefined || more === '{}') return JSON.stringify({ ...head, message: text })
    if (more.length <= FIELDS_LENGTH_MAX)
      return `${JSON.stringify({ ...head, message: text }).slice(0, -1)},"fields":${more}}`
    return JSON.stringify({ ...head, message: text, fields: { cut: clip(more, FIELDS_LENGTH_MAX) } })
  } catch {
    return JSON.stringify({ ...head, message: WITHHELD })
  }
}

/** A field that JSON cannot hold is written as text. */
function fieldsText(fields: Readonly<Record<string, unknown>>, redactor: Redactor): string {
  let plain: string
  try {
    plain = JSON.stringify(fields, toPlain)
  } catch {
    plain = JSON.stringify(Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, inspect(value)])))
  }
  const shown = byName.named(JSON.parse(plain))
  return JSON.stringify(shown, (_, value: unknown) => (typeof value === 'string' ? redactor(value) : value))
}

function toPlain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return isError(value) ? { name: value.name, message: value.message, stack: value.stack } : value
}

/** From what an engine kept, oldest first. A line that another program wrote is shown as its text. */
export function readLog(kept: readonly { readonly seq: number; readonly line: string }[]): JobLog {
  const said = kept.at(-1)?.seq ?? 0
  return { lines: kept.map(({ seq, line }) => readLine(seq, line)), dropped: said - kept.length }
}

function readLine(seq: number, line: string): LogLine {
  const value = parseOrText(line)
  const read = isRecord(value) ? value : { message: line }
  const { at, level, attempt, worker, message, fields } = read
  return {
    seq,
    atMs: typeof at === 'number' ? at : 0,
    level: LOG_LEVELS.find((known) => known === level) ?? 'info',
    attempt: typeof attempt === 'number' ? attempt : 0,
    worker: typeof worker === 'string' ? worker : '',
    message: typeof message === 'string' ? message : line,
    fields: isRecord(fields) ? fields : null,
  }
}
