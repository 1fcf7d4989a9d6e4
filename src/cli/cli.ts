import { userInfo } from 'node:os'
import { InvalidArgumentError } from 'commander'
import type { Note } from '../client/audit.ts'
import { type Mill, type MillOptions, open } from '../client/mill.ts'
import type { By } from '../engine/dead-letters.ts'
import { planMigrations } from '../engine/open.ts'
import { EngineError, UnsupportedError } from '../errors.ts'
import { redact } from '../job/error-record.ts'
import { errorText } from '../observe/error-text.ts'
import type { Clock } from '../time/clock.ts'
import { parseDurationMs } from '../time/duration.ts'
import type { CliExtensions } from './extensions.ts'
import type { StopRequest } from './stop-signals.ts'
import type { Terminal } from './terminal.ts'

/** What every command stands on. */
export interface Cli {
  readonly terminal: Terminal
  readonly clock: Clock
  readonly extensions: CliExtensions
}

/** The options that every command takes. */
export interface SharedOptions {
  readonly engine: string
  readonly json?: true
  readonly debug?: true
}

export const ENGINE_DEFAULT = 'sqlite:./millrace.db'

/** Opens a mill for one command and closes it whatever happens. */
export async function withMill<Answer>(
  url: string,
  options: MillOptions,
  use: (mill: Mill) => Promise<Answer>,
): Promise<Answer> {
  const mill = await open(url, options)
  try {
    return await use(mill)
  } finally {
    await mill.close()
  }
}

/**
 * For a command that ends: refuses an engine whose jobs end with the process, since an acknowledged job would be lost
 * and a listing would always be empty.
 */
export function withStoredMill<Answer>(
  url: string,
  options: MillOptions,
  use: (mill: Mill) => Promise<Answer>,
): Promise<Answer> {
  return withMill(url, options, (mill) => {
    throwIfNotStored(mill)
    return use(mill)
  })
}

function throwIfNotStored({ engine: { name, capabilities } }: Mill): void {
  if (capabilities.survives !== 'nothing') return
  const limit = `keeps its jobs only while one process lives, so this command cannot reach them; use ${ENGINE_DEFAULT}`
  throw new UnsupportedError({ engine: name, limit })
}

/**
 * The same for a command that runs until it is stopped. A stop while the store is being opened is heard at once: then
 * `use` is not called.
 */
export async function withStoredMillUntil(
  stop: StopRequest,
  url: string,
  options: MillOptions,
  use: (mill: Mill) => Promise<void>,
): Promise<void> {
  const mill = await stop.unlessStopped(open(url, options), (late) => late.close())
  if (mill === null) return
  try {
    throwIfNotStored(mill)
    await use(mill)
  } finally {
    await mill.close()
  }
}

/** Looks into a store that must be there already: a mistyped path gets an error, not a new empty database. */
export async function withExistingMill<Answer>(
  { clock }: Cli,
  url: string,
  use: (mill: Mill) => Promise<Answer>,
): Promise<Answer> {
  const plan = await planMigrations(url, { clock, migrate: false })
  if (plan?.version === 0) {
    throw new EngineError(
      'ERR_SCHEMA_MISSING',
      `there are no Millrace tables in '${redact(url)}'; check the path, or create them with 'millrace migrate' or a first job`,
    )
  }
  return withStoredMill(url, { clock, migrate: false }, use)
}

/** An option that is a whole number; its range is checked where the option is used. */
export function wholeNumber(text: string): number {
  if (/^-?\d+$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number.')
}

/** An option that is a duration such as 30s, in milliseconds. */
export function duration(text: string): number {
  try {
    return parseDurationMs(text, 'duration')
  } catch {
    throw new InvalidArgumentError(`It must be a duration such as 250ms, 30s, 5m, 1h or 7d.`)
  }
}

/** Text for `addHelpText('after', …)`: what to type, and what it does. */
export function examples(lines: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length))
  return `\nExamples:\n${lines.map(([command, meaning]) => `  ${command.padEnd(width)}   ${meaning}`).join('\n')}`
}

/** Who types, as the history and the audit will name them. A container may run under a user id that has no name. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}

type Act = Omit<Note, keyof By> & Partial<By>

/**
 * Writes an act that was carried out into the audit, where the engine has one. The act is done: an audit that cannot be
 * written is told, and does not turn the answer into a failure that invites to repeat it.
 */
export async function noted({ terminal }: Cli, mill: Mill, act: Act): Promise<void> {
  if (mill.engine.deadLetters === undefined) return
  try {
    await mill.note({ who: userName(), reason: 'from the command line', ...act })
  } catch (error) {
    terminal.complain(`it was done and could not be audited: ${errorText(error)}`)
  }
}
