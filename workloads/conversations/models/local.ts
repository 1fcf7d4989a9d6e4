import { setImmediate as turn } from 'node:timers/promises'
import { EngineError } from '../../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { findLearnings } from './learnings.ts'
import { findByContext } from './local-rules.ts'
import type { Model, ModelFinding, ModelMessage } from './model.ts'
import { findNames, isTool, withoutPossessive } from './names.ts'

export interface LocalModelOptions {
  /**
   * Whether the package `compromise` looks for names too: `auto` (default) uses it where it is installed, `on` requires it,
   * `off` never loads it.
   */
  readonly names?: 'auto' | 'on' | 'off'
}

const OPTIONS: OptionNames<LocalModelOptions> = { names: true }

const NO_USAGE = Object.freeze({ inputTokens: 0, outputTokens: 0 })

/**
 * A model without a network: word lists, contexts and, where it is installed, `compromise`. It finds less than a language
 * model does, and always the same in the same text.
 *
 * @example
 * const model = localModel({ names: 'off' })
 */
export function localModel(options: LocalModelOptions = {}): Model {
  refuseUnknown(options, OPTIONS, 'localModel')
  const { names = 'auto' } = options
  return {
    name: 'local',
    endpoint: null,
    async findPersonalData(messages, { signal }) {
      const people = names === 'off' ? null : await loadPeople(names)
      const items: (readonly ModelFinding[])[] = []
      for (const message of messages) {
        const byPackage = people === null ? [] : await peopleIn(message.content, people, signal)
        items.push(
          asFindings(message, [...findByContext(message.content), ...findNames(message.content), ...byPackage]),
        )
      }
      return { items: items.flat(), usage: NO_USAGE }
    },
    async findLearnings(messages, _wanted, { signal }) {
      signal.throwIfAborted()
      return { items: findLearnings(messages), usage: NO_USAGE }
    },
  }
}

type Found = Omit<ModelFinding, 'message_id'>

/** Looking through a text for each of ten thousand names takes seconds. */
const COMPARED_MAX = 200

/** Each snippet once, longer ones first. One that stands only inside longer ones, as `John` in `John Smith`, is left out. */
function asFindings({ id, content }: ModelMessage, found: readonly Found[]): readonly ModelFinding[] {
  const best = new Map<string, Found>()
  for (const one of found) {
    const isPlaceholder = /\[[A-Z][A-Z0-9_ -]*\]/.test(one.snippet)
    if (one.snippet.trim().length < 2 || isPlaceholder) continue
    if ((best.get(one.snippet)?.confidence ?? -1) < one.confidence) best.set(one.snippet, one)
  }
  const sorted = [...best.values()].sort(bySnippetLength)
  const kept = sorted.length > COMPARED_MAX ? sorted : withoutContained(content, sorted)
  return kept.map(({ snippet, category, confidence }) => ({ message_id: id, snippet, category, confidence }))
}

function withoutContained(content: string, longestFirst: readonly Found[]): readonly Found[] {
  let left = content
  return longestFirst.filter(({ snippet }) => {
    const before = left
    left = left.replaceAll(snippet, '\n')
    return left !== before
  })
}

function bySnippetLength(a: Found, b: Found): number {
  return b.snippet.length - a.snippet.length
}

/** The names of people in a text, as `compromise` sees them. */
type People = (text: string) => readonly string[]

async function loadPeople(names: 'auto' | 'on'): Promise<People | null> {
  try {
    const { default: nlp } = await import('compromise')
    return (text) => nlp(text).people().out('array')
  } catch (error) {
    if (names === 'auto') return null
    throw new EngineError(
      'ERR_MODULE_MISSING',
      "the package 'compromise' is not installed; run: npm install compromise",
      {
        cause: error,
      },
    )
  }
}

/** compromise takes 14 ms for a kilobyte of prose and more for lists of names, so it gets a little at a time. */
const CHUNK_CHARS = 1_000
const NAME_CHARS_MAX = 60

async function peopleIn(text: string, people: People, signal: AbortSignal): Promise<readonly Found[]> {
  const found: Found[] = []
  for (const chunk of chunksOf(text)) {
    // Other jobs, heartbeats and the abort get their turn.
    await turn()
    signal.throwIfAborted()
    for (const name of people(chunk).map(plainName)) {
      if (isPerson(name) && chunk.includes(name))
        found.push({ snippet: name, category: 'name', confidence: name.includes(' ') ? 0.75 : 0.55 })
    }
  }
  return found
}

function plainName(name: string): string {
  return withoutPossessive(name.trim().replace(/^[^\p{L}]+|[^\p{L}]+$/gu, ''))
}

/** Words in a name that begin with a small letter. */
const PARTICLES: ReadonlySet<string> = new Set('al bin da de del der di dos du el la le van von y zu'.split(' '))

/** It also reports pronouns, roles, `Ada compiler` and other tools. */
function isPerson(name: string): boolean {
  // Lines of a chunk need not be neighbours in the text.
  if (name.length < 3 || name.length > NAME_CHARS_MAX || name.includes('\n') || isTool(name)) return false
  const words = name.split(/\s+/)
  return /^\p{Lu}\p{L}*\p{Ll}/u.test(name) && words.every((word) => /^\p{Lu}/u.test(word) || PARTICLES.has(word))
}

/** Lines with a capitalised word, each once, in pieces of bounded length. Code has few of them. */
function chunksOf(text: string): readonly string[] {
  const lines = new Set(
    text.split('\n').filter((line) => /(?<![\p{L}\p{N}_])\p{Lu}\p{Ll}/u.test(line) && !/[;{}]\s*$/.test(line)),
  )
  const chunks: string[] = []
  for (const line of [...lines].flatMap(boundedPieces)) {
    const last = chunks.at(-1)
    if (last !== undefined && last.length + line.length < CHUNK_CHARS) chunks[chunks.length - 1] = `${last}\n${line}`
    else chunks.push(line)
  }
  return chunks
}

function boundedPieces(line: string): readonly string[] {
  return line.match(new RegExp(String.raw`[^]{1,${CHUNK_CHARS}}(?:\s|$)|[^]{1,${CHUNK_CHARS}}`, 'g')) ?? []
}
