/** The prompt for one cluster. The memories are data: nothing in them can close the tag around them. */

import { storableText } from '../../database/text.ts'
import { ModelFailure } from '../../language-models/model-call.ts'
import { boundaryFor, dataOnly, withoutThinking } from '../../language-models/prompt-data.ts'

export const SYNTHESIS = { maxTokens: 200, temperature: 0.3 } as const

/** Of one memory; less where a cluster has many. */
const MEMORY_CHARS_MAX = 1_000
const MEMORIES_CHARS_MAX = 20_000
/** 200 tokens are about 800 characters of English. */
const SYNTHESIS_CHARS_MAX = 2_000

export interface SynthesisPrompt {
  readonly text: string
  readonly boundary: string
  /** How many memories were too long and are given without their end. */
  readonly shortened: number
}

/** One memory per line, numbered from 1. A line break inside a memory would begin a line of its own, so it becomes a blank. */
export function synthesisPrompt(contents: readonly string[]): SynthesisPrompt {
  const boundary = boundaryFor(contents)
  const charsMax = Math.min(MEMORY_CHARS_MAX, Math.floor(MEMORIES_CHARS_MAX / contents.length))
  const lines = contents.map(folded)
  const listed = lines.map((line, at) => `${at + 1}. ${shortened(line, charsMax)}`).join('\n')
  const text = `Synthesize the following related memories into a single coherent fact or concept:

<memories-${boundary}>
${listed}
</memories-${boundary}>

${dataOnly('the memories')}
Provide a concise synthesis that captures the key information, in at most three sentences, and answer with the synthesis alone.`
  return { text, boundary, shortened: lines.filter((line) => line.length > charsMax).length }
}

function folded(content: string): string {
  return content.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
}

function shortened(line: string, charsMax: number): string {
  return line.length <= charsMax ? line : `${line.slice(0, charsMax - 1).toWellFormed()}…`
}

/** The answer is taken whole or not at all. Errors quote nothing of it. */
export function readSynthesis(text: unknown, { boundary }: SynthesisPrompt): string {
  const content = typeof text === 'string' ? storableText(withoutThinking(text)).trim() : ''
  if (content === '') throw refused('is empty')
  if (content.length > SYNTHESIS_CHARS_MAX)
    throw refused(`has ${content.length} characters and may have ${SYNTHESIS_CHARS_MAX}`)
  if (content.includes(boundary)) throw refused('repeats the code around the memories')
  return content
}

function refused(why: string): ModelFailure {
  return new ModelFailure(`the model's synthesis ${why}; if this happens often, configure a more capable model`)
}
