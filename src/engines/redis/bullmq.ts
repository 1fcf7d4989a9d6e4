import { createRequire } from 'node:module'
import { moduleFile } from '../../engine/module-file.ts'
import { EngineError } from '../../errors.ts'

/** BullMQ's scripts that we call, with the number of keys each takes: another number means another script. */
export const BULL_SCRIPTS = Object.freeze({
  moveJobFromActiveToWait: 9,
  moveToDelayed: 11,
  moveToFinished: 14,
  promote: 9,
  releaseParentIfNoPendingDependencies: 2,
  removeJob: 2,
  reprocessJob: 9,
  retryJob: 11,
  updateJobScheduler: 12,
  updateProgress: 3,
})

export type BullScript = keyof typeof BULL_SCRIPTS

interface Texts {
  readonly scripts: Readonly<Record<string, { readonly content: string; readonly keys: number }>>
  /** The functions inside the scripts, by name. */
  readonly functions: ReadonlyMap<string, string>
}

let loaded: Texts | null = null

/** BullMQ inlines the functions that a script uses, each from `local function` to an `end` at the margin. */
const FUNCTION = /^local (?:function )?(\w+)(?: = function)? ?\([\s\S]*?^end\b/gm
const COMMENT = /--\[\[[\s\S]*?\]\]/g

function texts(): Texts {
  loaded ??= load()
  return loaded
}

function load(): Texts {
  let scripts: Texts['scripts']
  try {
    scripts = createRequire(moduleFile(import.meta.url))('bullmq/dist/cjs/scripts')
  } catch (error) {
    throw new EngineError('ERR_MODULE_MISSING', 'To use Redis: npm install bullmq@6 ioredis', { cause: error })
  }
  const functions = new Map<string, string>()
  for (const { content } of Object.values(scripts)) {
    for (const [text, name = ''] of content.matchAll(FUNCTION)) functions.set(name, text)
  }
  return { scripts, functions }
}

function unfit(what: string): never {
  throw new EngineError(
    'ERR_MODULE_MISSING',
    `this BullMQ has no ${what}; install bullmq 6.7, which Millrace was tested with`,
  )
}

/**
 * The script as a function `bull_{name}(KEYS, ARGV)`, which needs no functions before it. Its first call defines the ones that
 * it calls, of which there are up to fifty: most of our scripts call it only where something is not plain, and for one job
 * Redis would take longer to define them than for all its commands. `defined`: those that are there anyhow.
 */
export function bullScript(name: BullScript, defined: readonly string[]): string {
  const script = texts().scripts[name]
  if (script === undefined || script.keys !== BULL_SCRIPTS[name]) {
    return unfit(`script '${name}' of ${BULL_SCRIPTS[name]} keys`)
  }
  const body = script.content.replaceAll(FUNCTION, '').replaceAll(COMMENT, '')
  const functions = bullFunctions(namesIn(body)).filter((text) => !defined.includes(text))
  const run = `bull_${name} = function(KEYS, ARGV)\n${body}\nend`
  return [
    `local bull_${name}`,
    `bull_${name} = function(...)`,
    ...functions,
    run,
    `return bull_${name}(...)`,
    'end',
  ].join('\n')
}

/** These functions and those they call, each after the ones it calls. */
export function bullFunctions(names: readonly string[]): readonly string[] {
  const placed = new Map<string, string>()
  const place = (name: string): void => {
    if (placed.has(name)) return
    const text = texts().functions.get(name) ?? unfit(`function '${name}'`)
    for (const other of namesIn(text)) if (other !== name) place(other)
    placed.set(name, text.replaceAll(COMMENT, ''))
  }
  for (const name of names) place(name)
  return [...placed.values()]
}

/** BullMQ's functions whose names occur in a text. */
function namesIn(text: string): readonly string[] {
  const known = texts().functions
  return [...new Set(text.match(/\w+/g))].filter((word) => known.has(word))
}
