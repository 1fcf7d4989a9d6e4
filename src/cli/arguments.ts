/** Parsers for the text of arguments and options. */
import { InvalidArgumentError, Option } from 'commander'
import { OptionError, PayloadError } from '../errors.ts'
import { isPort, PORT_MAX } from '../http/address.ts'
import type { Tenant } from '../job/job.ts'
import { isMetricsPrefix } from '../observe/metrics/names.ts'
import { parseDurationMs } from '../time/duration.ts'
import { fromIso } from '../time/iso.ts'

/** The range is checked where the number is used. */
export function wholeNumber(text: string): number {
  if (/^-?\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number.')
}

/** Checked before anything is opened. 0 takes any free port. */
export function portNumber(text: string): number {
  if (/^\d+$/.test(text) && isPort(Number(text))) return Number(text)
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${PORT_MAX}.`)
}

/** In milliseconds. */
export function duration(text: string): number {
  try {
    return parseDurationMs(text, 'duration')
  } catch {
    throw new InvalidArgumentError('It must be a duration such as 250ms, 30s, 5m, 1h or 7d.')
  }
}

/** Null would be another value to Commander. */
type None = 'none'

/** A number from 1, or none. */
export function concurrencyOrNone(text: string): number | None {
  return text === 'none' ? text : wholeNumber(text)
}

/** How many starts in what time, such as 10/1s, or none. */
export function rateOrNone(text: string): { readonly max: number; readonly per: number } | None {
  if (text === 'none') return text
  const [max = '', per = '', ...rest] = text.split('/')
  if (rest.length === 0 && /^\d+$/.test(max) && per !== '') return { max: Number(max), per: duration(per) }
  throw new InvalidArgumentError('It must be a number of starts and a duration, such as 10/1s, or none.')
}

/** Names separated by commas. `what` completes the complaint: "names of tables, such as jobs,asr_jobs". */
export function namesIn(text: string, what: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.includes('')) throw new InvalidArgumentError(`It must be ${what}, separated by commas.`)
  return names
}

/** The value of `--tables`. */
export function tableNames(text: string): readonly string[] {
  return namesIn(text, 'names of tables, such as jobs,asr_jobs')
}

export function metricsPrefixOption(): Option {
  return new Option('--metrics-prefix <prefix>', 'what the names of metrics start with (default: millrace_)').argParser(
    (text) => {
      if (isMetricsPrefix(text)) return text
      throw new InvalidArgumentError('It must be letters, digits, _ and :, not beginning with a digit.')
    },
  )
}

/** An option that may be repeated. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** Refused unless it is UTF-8: replacement characters would be another payload. */
export function decodePayload(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new PayloadError('ERR_PAYLOAD_NOT_JSON', 'standard input is not UTF-8; convert it, for example with iconv', {
      cause: error,
    })
  }
}

export function parsePayload(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new PayloadError(
      'ERR_PAYLOAD_NOT_JSON',
      `the payload is not JSON; quote it for your shell, such as '{"name":"Ada"}', or pass - and pipe it in`,
      { cause: error },
    )
  }
}

/** A zone is required: the store may be read on a machine in another one. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/

export function parseTime(text: string, name: string): Date {
  const ms = TIME.test(text) ? fromIso(text) : Number.NaN
  if (Number.isFinite(ms)) return new Date(ms)
  throw new OptionError(`'${name}' is '${text}'; give a time with its zone, such as 2030-01-31T09:00:00Z`)
}

export function parseTenant(tenant: string): Tenant {
  const [orgId = '', workspaceId, ...rest] = tenant.split('/')
  if (orgId === '' || workspaceId === '' || rest.length > 0) {
    throw new OptionError(`'tenant' is '${tenant}'; give org or org/workspace`)
  }
  return { orgId, ...(workspaceId !== undefined && { workspaceId }) }
}
