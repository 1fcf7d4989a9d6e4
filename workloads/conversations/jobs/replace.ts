/** Replaces what a model found in a message. Pure. */
import type { Span } from '../sanitize/rule.ts'

/** A snippet that the model found, with the category as it is stored. */
export interface Found {
  readonly snippet: string
  readonly category: string
  readonly confidence: number
}

export interface Replaced<Finding> {
  readonly text: string
  /** Null where the snippet does not stand in the text, so that nothing could be replaced. */
  readonly replacements: readonly { readonly finding: Finding; readonly replacement: string | null }[]
}

interface Place extends Span {
  readonly replacement: string
}

/** `person name` becomes `[PERSON_NAME]`. */
export function replacementOf(category: string): string {
  return `[${category.toUpperCase()}]`
}

/**
 * Replaces every occurrence of every snippet. Where occurrences overlap, all of their text goes, and the longest one names
 * the replacement: replacing one after the other would leave the rest of the second.
 */
export function replaceFound<Finding extends Found>(text: string, findings: readonly Finding[]): Replaced<Finding> {
  const replacements: { finding: Finding; replacement: string | null }[] = []
  const places: Place[] = []
  for (const finding of findings) {
    const replacement = replacementOf(finding.category)
    const spans = occurrences(text, finding.snippet)
    for (const span of spans) places.push({ ...span, replacement })
    replacements.push({ finding, replacement: spans.length === 0 ? null : replacement })
  }
  return { text: rewrite(text, merged(places)), replacements }
}

const SYNTAX = /[\\^$.*+?()[\]{}|/]/g

/** Exactly as given; if it does not occur so, then in any case and with any white space between its words. */
function occurrences(text: string, snippet: string): readonly Span[] {
  const exact = occurrencesOf(text, snippet)
  return exact.length > 0 ? exact : looseOccurrences(text, snippet)
}

function occurrencesOf(text: string, snippet: string): readonly Span[] {
  const spans: Span[] = []
  for (let start = text.indexOf(snippet); start >= 0; start = text.indexOf(snippet, start + snippet.length)) {
    spans.push({ start, end: start + snippet.length })
  }
  return spans
}

/** Models change case and white space when they quote. */
function looseOccurrences(text: string, snippet: string): readonly Span[] {
  const words = snippet.trim().split(/\s+/)
  // One run of blanks between two words that contain none: the pattern cannot backtrack.
  const pattern = new RegExp(words.map((word) => word.replaceAll(SYNTAX, '\\$&')).join('\\s+'), 'giu')
  return [...text.matchAll(pattern)].map((match) => ({ start: match.index, end: match.index + match[0].length }))
}

/** Overlapping places become one. */
function merged(places: readonly Place[]): readonly Place[] {
  const sorted = places.toSorted((one, other) => one.start - other.start || other.end - one.end)
  const result: { start: number; end: number; replacement: string; longest: number }[] = []
  for (const { start, end, replacement } of sorted) {
    const last = result.at(-1)
    if (last === undefined || start >= last.end) {
      result.push({ start, end, replacement, longest: end - start })
      continue
    }
    last.end = Math.max(last.end, end)
    if (end - start <= last.longest) continue
    last.longest = end - start
    last.replacement = replacement
  }
  return result
}

function rewrite(text: string, places: readonly Place[]): string {
  let rest = 0
  let rewritten = ''
  for (const { start, end, replacement } of places) {
    rewritten += text.slice(rest, start) + replacement
    rest = end
  }
  return rewritten + text.slice(rest)
}

/** A placeholder of an earlier replacement, which models sometimes report. */
const PLACEHOLDER = /^\[[A-Z][A-Z0-9_]*\]$/

export function isPlaceholder(snippet: string): boolean {
  return PLACEHOLDER.test(snippet.trim())
}

const CATEGORY = /^[a-z]+(?:_[a-z]+){0,4}$/
const CATEGORY_LENGTH_MAX = 40

/**
 * A category in the form that is stored, such as `person_name`. It is written into the message, so one that repeats a
 * piece of a snippet, or is no plain name, becomes `other`.
 */
export function storedCategory(category: string, snippets: readonly string[]): string {
  const plain = category
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '_')
    .replaceAll(/^_|_$/g, '')
  if (!CATEGORY.test(plain) || plain.length > CATEGORY_LENGTH_MAX) return 'other'
  const repeats = snippets.some((snippet) => {
    const words = new Set(snippet.toLowerCase().split(/[^\p{L}\p{N}]+/u))
    return plain.split('_').some((word) => words.has(word))
  })
  return repeats ? 'other' : plain
}
