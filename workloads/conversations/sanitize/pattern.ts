/**
 * Patterns of users, matched in linear time. JavaScript's own engine can take exponential time, and V8's `l` flag does not
 * help: it takes quadratic time to find all matches, and refuses {17}. So a pattern becomes an automaton without backtracking
 * (Glushkov's), which remembers for each position in the pattern the earliest start that leads to it.
 */
import { OptionError } from '../../../src/errors.ts'
import { type CodeSet, isWord, PatternReader } from './pattern-reader.ts'
import type { Span } from './rule.ts'

/** `\b` at the two ends. A `\\b` at the end is a backslash and a b. */
const ENDS = /^(\\b)?((?:[^\\]|\\(?!b$)[\s\S])*)(\\b)?$/

/** Finds every character that belongs to any match: of two overlapping matches both. */
export function compilePattern(pattern: string, options: { readonly ignoreCase: boolean }): (text: string) => Span[] {
  const [, opens = '', inner = '', closes = ''] = ENDS.exec(pattern) ?? []
  const reader = new PatternReader(inner, options.ignoreCase)
  const whole = reader.whole()
  if (whole.empty) {
    throw new OptionError(`the pattern ${JSON.stringify(pattern)} matches the empty text; make a part of it required`)
  }
  const automaton: Automaton = {
    sets: reader.sets.map(remembered),
    follow: reader.follow.map((next) => [...next]),
    first: whole.first,
    accepts: Uint8Array.from(reader.sets, (_, position) => (whole.last.includes(position) ? 1 : 0)),
    opens: opens !== '',
    closes: closes !== '',
  }
  return (text) => run(automaton, text)
}

interface Automaton {
  readonly sets: readonly CodeSet[]
  readonly follow: readonly (readonly number[])[]
  readonly first: readonly number[]
  readonly accepts: Uint8Array
  /** A match starts, or ends, at the edge of a word. */
  readonly opens: boolean
  readonly closes: boolean
}

/** A set with its answers for ASCII worked out. */
function remembered(set: CodeSet): CodeSet {
  const ascii = Uint8Array.from({ length: 128 }, (_, code) => (set(code) ? 1 : 0))
  return (code) => (code < 128 ? ascii[code] === 1 : set(code))
}

/** Positions in the pattern that the last character can be at, with the earliest start of the way there. */
class Reached {
  readonly positions: Int32Array
  readonly starts: Int32Array
  readonly #isIn: Uint8Array
  size = 0

  constructor(count: number) {
    this.positions = new Int32Array(count)
    this.starts = new Int32Array(count)
    this.#isIn = new Uint8Array(count)
  }

  add(position: number, start: number): void {
    if (this.#isIn[position] === 1) {
      if (start < (this.starts[position] ?? 0)) this.starts[position] = start
      return
    }
    this.#isIn[position] = 1
    this.positions[this.size++] = position
    this.starts[position] = start
  }

  clear(): void {
    for (let index = 0; index < this.size; index++) this.#isIn[this.positions[index] ?? 0] = 0
    this.size = 0
  }
}

function run({ sets, follow, first, accepts, opens, closes }: Automaton, text: string): Span[] {
  const spans: Span[] = []
  let now = new Reached(sets.length)
  let next = new Reached(sets.length)
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    for (let at = 0; at < now.size; at++) {
      const position = now.positions[at] ?? 0
      for (const to of follow[position] ?? []) if (sets[to]?.(code)) next.add(to, now.starts[position] ?? 0)
    }
    for (const to of first) if (sets[to]?.(code) && (!opens || isEdge(text, index))) next.add(to, index)
    let start = text.length
    for (let at = 0; at < next.size; at++) {
      const position = next.positions[at] ?? 0
      if (accepts[position] === 1) start = Math.min(start, next.starts[position] ?? 0)
    }
    if (start <= index && (!closes || isEdge(text, index + 1))) cover(spans, { start, end: index + 1 })
    now.clear()
    ;[now, next] = [next, now]
  }
  return spans
}

function isEdge(text: string, index: number): boolean {
  const before = index > 0 && isWord(text.charCodeAt(index - 1))
  return before !== (index < text.length && isWord(text.charCodeAt(index)))
}

/** Adds a place that ends behind all the others. */
function cover(spans: Span[], place: Span): void {
  let start = place.start
  for (let last = spans.at(-1); last !== undefined && last.end > start; last = spans.at(-1)) {
    start = Math.min(start, last.start)
    spans.pop()
  }
  spans.push({ start, end: place.end })
}
