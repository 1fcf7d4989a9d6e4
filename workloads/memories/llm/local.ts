import type { Llm } from './llm.ts'

/** A token of English has about four characters. */
const CHARS_PER_TOKEN = 4
/** Two sentences that share this much of their words say the same. */
const SAME = 0.6

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })

/**
 * Answers without a network, by picking sentences: of the numbered lines of the prompt it keeps the sentences that share the
 * most words with the others, leaves out those that repeat an earlier one, and joins them in their order. It understands
 * nothing, writes no word of its own and draws no conclusion; the same prompt always has the same answer.
 *
 * @example
 * const llm = localLlm()
 */
export function localLlm(): Llm {
  return {
    complete: async (prompt, { maxTokens }) => ({ text: picked(linesOf(prompt), maxTokens * CHARS_PER_TOKEN) }),
  }
}

function linesOf(prompt: string): readonly string[] {
  return [...prompt.matchAll(/^\d+\. (.+)$/gm)].map(([, line = '']) => line)
}

interface Sentence {
  readonly text: string
  readonly words: ReadonlySet<string>
  readonly at: number
}

function picked(lines: readonly string[], charsMax: number): string {
  const all = lines
    .flatMap((line) => [...sentences.segment(line)].map(({ segment }) => segment.trim()))
    .filter((text) => text !== '')
    .map((text, at): Sentence => ({ text, at, words: new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) }))
  const counts = new Map<string, number>()
  for (const { words } of all) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  const weight = ({ words }: Sentence): number =>
    [...words].reduce((sum, word) => sum + (counts.get(word) ?? 0), 0) / Math.max(words.size, 1)
  const kept: Sentence[] = []
  let chars = 0
  for (const sentence of all.toSorted((a, b) => weight(b) - weight(a) || a.at - b.at)) {
    const repeats = kept.some((other) => overlap(sentence.words, other.words) > SAME)
    if (repeats || chars + sentence.text.length + 1 > charsMax) continue
    kept.push(sentence)
    chars += sentence.text.length + 1
  }
  // A single sentence that is too long loses its end.
  if (kept.length === 0) return (all[0]?.text ?? '').slice(0, charsMax).toWellFormed()
  return kept
    .toSorted((a, b) => a.at - b.at)
    .map(({ text }) => (/[.!?…]$/.test(text) ? text : `${text}.`))
    .join(' ')
}

/** Shared words, of those of the shorter one. */
function overlap(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  return [...one].filter((word) => other.has(word)).length / Math.max(Math.min(one.size, other.size), 1)
}
