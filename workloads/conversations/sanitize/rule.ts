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
  /** Every place to replace, in order and without overlap. Takes time linear in the length of the text. */
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
