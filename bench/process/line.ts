/**
 * Processes of one measurement talk over Node's IPC: words with a value, in both directions. Both ends are this file,
 * so what arrives has the shape that was sent.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ContenderEntry, Place } from '../contender.ts'
import type { Sizes } from '../sizes.ts'

/** What a process is started for. */
export interface Assignment {
  readonly scenario: string
  /** `measure`, `prepare`, or one of the scenario's own parts. */
  readonly part: string
  readonly entry: ContenderEntry
  readonly place: Place
  readonly sizes: Sizes
}

export interface Line {
  say(word: string, value?: unknown): void
  /** The next value said under this word; one said before anybody listened is kept. */
  hear(word: string): Promise<unknown>
  /** Every value said under this word from now on. */
  on(word: string, listener: (value: unknown) => void): void
}

/** A process started by another one. */
export interface Companion extends Line {
  /** Resolves when it ended well; rejects with its error, or when it died without one. */
  readonly ended: Promise<void>
  /** For a companion that will not end by itself. */
  kill(): void
}

interface Said {
  readonly word: string
  readonly value: unknown
}

/** Words that belong to the line itself. */
export const ASSIGN = 'line:assign'
export const FAILED = 'line:failed'

class Words {
  readonly #kept = new Map<string, unknown[]>()
  readonly #listeners = new Map<string, ((value: unknown) => void)[]>()

  take(said: Said): void {
    const listeners = this.#listeners.get(said.word)
    if (listeners === undefined) this.#kept.set(said.word, [...(this.#kept.get(said.word) ?? []), said.value])
    else for (const listener of [...listeners]) listener(said.value)
  }

  on(word: string, listener: (value: unknown) => void): void {
    this.#listeners.set(word, [...(this.#listeners.get(word) ?? []), listener])
    const kept = this.#kept.get(word) ?? []
    this.#kept.delete(word)
    for (const value of kept) listener(value)
  }

  hear(word: string): Promise<unknown> {
    const kept = this.#kept.get(word)
    if (kept !== undefined && kept.length > 0) return Promise.resolve(kept.shift())
    return new Promise((resolve) => {
      const listener = (value: unknown): void => {
        const others = (this.#listeners.get(word) ?? []).filter((each) => each !== listener)
        if (others.length > 0) this.#listeners.set(word, others)
        else this.#listeners.delete(word)
        resolve(value)
      }
      this.on(word, listener)
    })
  }
}

/** The line of a started process to the one that started it. */
export interface StarterLine extends Line {
  /** Hangs up once everything said is out, so that the process can end by itself. */
  end(): Promise<void>
}

export function lineToStarter(): StarterLine {
  const words = new Words()
  const unsent = new Set<Promise<void>>()
  process.on('message', (message) => words.take(message as Said))
  // Nobody would read the measurement of a process whose starter is gone, and it would go on using the machine.
  const orphaned = (): never => process.exit(1)
  process.on('disconnect', orphaned)
  return {
    say: (word, value = null) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      unsent.add(promise)
      process.send?.({ word, value }, () => resolve())
      void promise.then(() => unsent.delete(promise))
    },
    hear: (word) => words.hear(word),
    on: (word, listener) => words.on(word, listener),
    end: async () => {
      await Promise.all(unsent)
      process.off('disconnect', orphaned)
      process.disconnect?.()
    },
  }
}

/** Beside this file, whether it is the source or was compiled. */
const CHILD = fileURLToPath(new URL(import.meta.url.replace(/.*\./, 'child.'), import.meta.url))
const FLAGS = ['--disable-warning=ExperimentalWarning']

/** Starts a fresh process, so that no measurement inherits another one's memory or compiled code. */
export function startProcess(assignment: Assignment): Companion {
  const child = fork(CHILD, [], {
    execArgv: FLAGS,
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const words = new Words()
  child.on('message', (message) => words.take(message as Said))
  child.send({ word: ASSIGN, value: assignment })
  const ended = endOf(child, words, assignment)
  // A companion's failure is its starter's to await; until then it must not end the process as unhandled.
  ended.catch(() => {})
  return {
    ended,
    say: (word, value = null) => {
      if (child.connected) child.send({ word, value })
    },
    hear: (word) => Promise.race([words.hear(word), failureOf(ended, assignment, word)]),
    on: (word, listener) => words.on(word, listener),
    kill: () => void child.kill('SIGKILL'),
  }
}

function endOf(child: ChildProcess, words: Words, assignment: Assignment): Promise<void> {
  const who = `${assignment.scenario}/${assignment.part} of ${assignment.entry.name}`
  const exited = new Promise<void>((resolve, reject) => {
    words.on(FAILED, (error) => reject(new Error(`${who}: ${String(error)}`)))
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`${who} ended with ${signal ?? `code ${code}`}`))
    })
  })
  // The line closes after the last word was heard, which may be later than the exit.
  const hungUp = new Promise<void>((resolve) => child.on('disconnect', resolve))
  return Promise.all([exited, hungUp]).then(() => {})
}

/** Waiting for a word from a process that has ended would last for ever. */
async function failureOf(ended: Promise<void>, assignment: Assignment, word: string): Promise<never> {
  await ended
  throw new Error(
    `${assignment.scenario}/${assignment.part} of ${assignment.entry.name} ended without saying '${word}'`,
  )
}
