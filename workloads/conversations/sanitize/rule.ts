/** What a rule is. The hook is built from this folder too, so it has no dependencies. */

export interface Span {
  readonly start: number
  readonly end: number
}

export interface Rule {
  /** Such as `mail`; unique among the rules in use. */
  readonly id: string
  /** Such as `email`, `phone`, `secret`: the column `category` of sanitization_log. */
  readonly category: string
  /** What stands in the text instead, such as `[EMAIL]`. */
  readonly replacement: string
  /** Without a match of it the rule finds nothing and is not called. Not global. */
  readonly hint?: RegExp
  /** The rule is also given the letters as written, not only the Latin ones they look like. */
  readonly exact?: boolean
  /** Also looked for where a line breaks inside. */
  readonly acrossLines?: boolean
  /** Every place to replace. Takes time linear in the length of the text. */
  find(text: string): readonly Span[]
}

/** One replacement. The snippet is only for hashing: it is never stored or logged. */
export interface RuleFinding {
  readonly rule: string
  readonly category: string
  readonly replacement: string
  readonly snippet: string
}

export interface Sanitized {
  readonly text: string
  readonly findings: readonly RuleFinding[]
  /** The version of the rules: the column `sanitization_version`. It changes with the rules that users add. */
  readonly version: string
}

export type Sanitize = (text: string) => Sanitized

/**
 * The places of a pattern, which must have the flags g and d where `group` is given: then only that group is replaced.
 * `accept` refuses what only looks like it; the search goes on behind the refused match.
 */
export function spansOf(
  pattern: RegExp,
  text: string,
  accept?: (match: RegExpExecArray) => boolean,
  group = 0,
): Span[] {
  const spans: Span[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [start, end] = match.indices?.[group] ?? [match.index, match.index + match[0].length]
    if (end > start && (accept === undefined || accept(match))) spans.push({ start, end })
    if (match[0].length === 0) pattern.lastIndex++
  }
  return spans
}
