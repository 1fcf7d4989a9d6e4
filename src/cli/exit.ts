import { CommanderError } from 'commander'
import { type ErrorCode, fieldOf, isError, isMillraceError, messageOf } from '../errors.ts'
import { printable, type Terminal } from './terminal.ts'

/** Scripts may rely on these. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The command line, or a file it names, has to change; repeating the command cannot help. */
const USAGE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ERR_OPTION_INVALID',
  'ERR_PAYLOAD_INVALID',
  'ERR_PAYLOAD_TOO_LARGE',
  'ERR_PAYLOAD_NOT_JSON',
  'ERR_TYPE_UNKNOWN',
  'ERR_ENGINE_URL',
  'ERR_MODULE_MISSING',
  'ERR_MODULE_INVALID',
  'ERR_HANDLER_MISSING',
  'ERR_JOB_DUPLICATE',
  'ERR_UNSUPPORTED',
])

export interface Complaint {
  readonly code: string
  readonly message: string
  readonly exitCode: ExitCode
}

/** Any error as one line and an exit code. Null if commander only showed help. */
export function toComplaint(error: unknown): Complaint | null {
  if (error instanceof CommanderError) return fromCommander(error)
  if (isMillraceError(error)) {
    const exitCode = USAGE_CODES.has(error.code) ? EXIT.usage : EXIT.failed
    return { code: error.code, message: error.message, exitCode }
  }
  const code = fieldOf(error, 'code')
  return {
    code: typeof code === 'string' ? code : 'ERR_UNEXPECTED',
    message: `${messageOf(error)}; add --debug for the stack`,
    exitCode: EXIT.failed,
  }
}

function fromCommander(error: CommanderError): Complaint | null {
  if (error.exitCode === 0) return null
  if (error.code === 'commander.help') {
    return { code: 'ERR_OPTION_INVALID', message: 'no command; choose one of those above', exitCode: EXIT.usage }
  }
  const message = error.message
    .replace(/^error: /, '')
    .replace(/\.?\s*\n/g, ' ')
    .replace(/\.$/, '')
  return { code: 'ERR_OPTION_INVALID', message: `${message}; see --help`, exitCode: EXIT.usage }
}

/** Prints the error on stderr, with its stack only for --debug. */
export function report(error: unknown, terminal: Terminal, shown: { json?: true; debug?: true }): ExitCode {
  const complaint = toComplaint(error)
  if (complaint === null) return EXIT.done
  const { code, message, exitCode } = complaint
  terminal.complain(
    shown.json ? JSON.stringify({ error: { code, message } }) : `error: ${printable(message)} (${code})`,
  )
  if (shown.debug) terminal.complain(stackOf(error))
  return exitCode
}

function stackOf(error: unknown): string {
  if (!isError(error)) return messageOf(error)
  const own = error.stack ?? String(error)
  return error.cause === undefined ? own : `${own}\ncaused by ${stackOf(error.cause)}`
}
