import { userInfo } from 'node:os'
import type { Note } from '../client/audit.ts'
import { type Mill, open } from '../client/mill.ts'
import type { MillOptions } from '../client/options.ts'
import type { Actor } from '../engine/dead-letters.ts'
import { planMigrations } from '../engine/open.ts'
import { EngineError, UnsupportedError } from '../errors.ts'
import { errorText, redactUrl } from '../job/error-record.ts'
import { omitUndefined } from '../job/known-options.ts'
import type { Clock } from '../time/clock.ts'
import type { CliExtensions } from './extensions.ts'
import type { Terminal } from './terminal.ts'

/** What every command is given. */
export interface Cli {
  readonly terminal: Terminal
  readonly clock: Clock
  readonly extensions: CliExtensions
}

/** The options that every command takes. */
export interface SharedOptions {
  readonly engine: string
  /** Where heartbeats of workers are kept, if not with the jobs. */
  readonly presence?: string
  readonly json?: true
  readonly debug?: true
}

export const ENGINE_DEFAULT = 'sqlite:./millrace.db'

/** Opens a mill for one command and always closes it. */
async function withMill<Answer>(
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
 * For commands that end. They refuse an engine that keeps its jobs in the process: an enqueued job would be lost, and a
 * listing would always be empty.
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

export function throwIfNotStored({ engine: { name, capabilities } }: Mill): void {
  if (capabilities.survives !== 'nothing') return
  const limit = `keeps its jobs in one process, so this command cannot reach them; use ${ENGINE_DEFAULT}`
  throw new UnsupportedError({ engine: name, limit })
}

/** For a store that must exist: a mistyped path gets an error, not a new empty database. */
export async function withExistingMill<Answer>(
  { clock }: Cli,
  { engine: url, presence }: Pick<SharedOptions, 'engine' | 'presence'>,
  use: (mill: Mill) => Promise<Answer>,
): Promise<Answer> {
  const plan = await planMigrations(url, { clock, migrate: false })
  if (plan?.version === 0) {
    throw new EngineError(
      'ERR_SCHEMA_MISSING',
      `there are no Millrace tables in '${redactUrl(url)}'; check the path, or create them with 'millrace migrate' or a first job`,
    )
  }
  return withStoredMill(url, { clock, migrate: false, ...omitUndefined({ presence }) }, use)
}

/** The examples of a help text, for `addHelpText('after', …)`. */
export function examples(lines: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length))
  return `\nExamples:\n${lines.map(([command, meaning]) => `  ${command.padEnd(width)}   ${meaning}`).join('\n')}`
}

/** The name in the history and the audit. A container may run under a user id without a name. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}

type Act = Omit<Note, keyof Actor> & Partial<Actor>

/**
 * Records a finished act in the audit, where the engine has one. If that fails, a warning is printed: the act is done,
 * and an error would invite the user to repeat it.
 */
export async function audited({ terminal }: Cli, mill: Mill, act: Act): Promise<void> {
  if (mill.engine.deadLetters === undefined) return
  try {
    await mill.note({ who: userName(), reason: 'from the command line', ...act })
  } catch (error) {
    terminal.complain(`done, but not recorded in the audit: ${errorText(error)}`)
  }
}
