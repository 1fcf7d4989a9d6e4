/** The settings that make a coding assistant call the hook, in the form of Claude Code's settings.json. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { fieldOf, OptionError } from '../../../src/errors.ts'

/** The prompt, and the assistant's last answer to it. */
const EVENTS = ['UserPromptSubmit', 'Stop'] as const

/** Seconds after which the assistant goes on without the hook. It ends within two by itself, except on a disk that hangs. */
const TIMEOUT_S = 5

/** Beside the built command line, and what `npm run hook` builds in this repository. */
const BUILT = ['./bin/millrace-hook.cjs', './millrace-hook.cjs', '../../../dist/millrace-hook.cjs']

/** This Node with the built file: `npx` alone takes longer than the hook, and another Node may have no SQLite. */
export function hookCommand(): string {
  const files = BUILT.map((file) => fileURLToPath(new URL(file, import.meta.url)))
  const built = files.find((file) => existsSync(file))
  return built === undefined ? 'millrace-hook' : `${quoted(process.execPath)} ${quoted(built)}`
}

function quoted(file: string): string {
  return /^[\w./:@+-]+$/.test(file) ? file : `"${file}"`
}

export interface InstalledSettings {
  /** The whole file, as it should be. */
  readonly text: string
  /** False when it already has the hook. */
  readonly changed: boolean
}

/**
 * Adds the hook to the settings of an assistant and keeps everything else. `current` is the text of its settings file, or null if
 * there is none. Throws an OptionError when the text is not the settings it should be.
 */
export function withHook(current: string | null, command: string = hookCommand()): InstalledSettings {
  const settings = current === null || current.trim() === '' ? {} : parse(current)
  const hooks = objectOf(settings.hooks ?? {}, "'hooks'")
  const missing = EVENTS.filter((event) => !calls(hooks[event] ?? [], event, command))
  if (missing.length === 0) return { text: current ?? '', changed: false }
  const added = missing.map((event) => {
    const groups = arrayOf(hooks[event] ?? [], event)
    return [event, [...groups, { hooks: [{ type: 'command', command, timeout: TIMEOUT_S }] }]]
  })
  const after = { ...settings, hooks: { ...hooks, ...Object.fromEntries(added) } }
  return { text: `${JSON.stringify(after, null, 2)}\n`, changed: true }
}

type Fields = Readonly<Record<string, unknown>>

function parse(text: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new OptionError('the settings are not JSON; correct them first, nothing was changed')
  }
  return objectOf(value, 'the file')
}

function objectOf(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new OptionError(`${what} of the settings is not a JSON object; correct it first, nothing was changed`)
}

function arrayOf(value: unknown, event: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new OptionError(`'hooks.${event}' of the settings is not a list; correct it first, nothing was changed`)
}

/** Whether the event runs this command, or the hook from another place. */
function calls(groups: unknown, event: string, command: string): boolean {
  return arrayOf(groups, event).some((group) => {
    const entries = fieldOf(group, 'hooks')
    if (!Array.isArray(entries)) return false
    const commands = entries.map((entry) => String(fieldOf(entry, 'command')))
    return commands.some((one) => one === command || /\bmillrace-hook\b/.test(one))
  })
}

/** Null if there is none. */
export function readSettings(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (fieldOf(error, 'code') === 'ENOENT') return null
    throw error
  }
}

/** Keeps what was there as `<file>.backup`, and replaces the file at once, so that no assistant reads half of it. */
export function writeSettings(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  if (existsSync(file)) copyFileSync(file, `${file}.backup`)
  writeFileSync(`${file}.draft`, text)
  renameSync(`${file}.draft`, file)
}
