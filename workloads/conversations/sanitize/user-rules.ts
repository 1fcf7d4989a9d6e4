/** Rules that users add, as JSON. The hook and the worker read the same file. */
import { isMillraceError, type MillraceError, OptionError } from '../../../src/errors.ts'
import { readRegularFile } from '../store/regular-file.ts'
import { compilePattern } from './pattern.ts'
import type { Rule, Span } from './rule.ts'
import { userRulesFile } from './rules-file.ts'
import { viewOf } from './view.ts'

export { userRulesFile }

interface NamedRule {
  readonly id: string
  /** The column `category` of sanitization_log: small letters, digits, - and _. */
  readonly category: string
  /** What stands in the text instead, such as `[CUSTOMER]`. */
  readonly replacement: string
}

/**
 * A pattern is a regular expression of the part that can be matched in linear time: no look-around, no references to groups,
 * nothing lazy, `\b` only at its two ends. All that any match covers is replaced.
 */
export interface PatternRule extends NamedRule {
  readonly pattern: string
  /** Default: false. */
  readonly ignoreCase?: boolean
}

/** Terms are found as whole words, in any case, with any white space between their words. */
export interface TermRule extends NamedRule {
  readonly terms: readonly string[]
}

export type UserRule = PatternRule | TermRule

export interface LoadedRules {
  /** Those that can be used. */
  readonly rules: readonly UserRule[]
  /** What is wrong with the file or with its other rules, and what to do. */
  readonly error: MillraceError | null
}

const RULES_MAX = 200
const TERMS_MAX = 10_000

/**
 * The rules of a file `{ "rules": [ … ] }`. A file that does not exist has none. It never throws: what is wrong is in `error`, and the
 * other rules still protect.
 *
 * @example
 *   const { rules, error } = loadUserRules(userRulesFile(process.env))
 *   if (error !== null) console.error(error.message)
 *   const sanitize = createSanitizer({ rules })
 */
export function loadUserRules(file: string | null): LoadedRules {
  if (file === null) return { rules: [], error: null }
  try {
    return checked(file, readRules(file))
  } catch (thrown) {
    if (isMillraceError(thrown)) return { rules: [], error: thrown }
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : null
    if (code === 'ENOENT') return { rules: [], error: null }
    const why = code === null ? 'is not JSON' : `cannot be read (${String(code)})`
    return {
      rules: [],
      error: new OptionError(`${file} ${why}; correct or remove it. Only the built-in rules are used`),
    }
  }
}

function readRules(file: string): readonly unknown[] {
  const config: unknown = JSON.parse(readRegularFile(file).toString('utf8'))
  const rules = typeof config === 'object' && config !== null && 'rules' in config ? config.rules : []
  if (!Array.isArray(rules) || typeof config !== 'object' || Array.isArray(config)) {
    throw new OptionError(`${file} is not of the form { "rules": [ … ] }; correct it. Only the built-in rules are used`)
  }
  return rules
}

function checked(file: string, candidates: readonly unknown[]): LoadedRules {
  const rules: UserRule[] = []
  const wrong: string[] = []
  for (const [index, candidate] of candidates.entries()) {
    try {
      const rule = userRule(candidate)
      compileUserRule(rule)
      if (rules.some(({ id }) => id === rule.id)) throw new OptionError(`the id '${rule.id}' is used twice`)
      if (rules.length === RULES_MAX) throw new OptionError(`there are more than ${RULES_MAX} rules`)
      rules.push(rule)
    } catch (thrown) {
      wrong.push(`rule ${index + 1}: ${thrown instanceof Error ? thrown.message : 'not a rule'}`)
    }
  }
  const told = `${file}: ${wrong.join('; ')}. Correct or remove them; the other rules are used`
  return { rules, error: wrong.length === 0 ? null : new OptionError(told) }
}

/** Refuses everything that is not a rule. */
export function userRule(candidate: unknown): UserRule {
  const fields: Readonly<Record<string, unknown>> =
    typeof candidate === 'object' && candidate !== null ? { ...candidate } : {}
  const { id, category, replacement, pattern, terms, ignoreCase = false, ...unknown } = fields
  const [name] = Object.keys(unknown)
  if (name !== undefined) {
    throw new OptionError(`'${name}' is not known; a rule has id, category, replacement, and pattern or terms`)
  }
  if (typeof id !== 'string' || !/^[\w.-]{1,64}$/.test(id))
    throw new OptionError(`its id is not 1 to 64 of [A-Za-z0-9_.-]`)
  if (typeof category !== 'string' || !/^[a-z][a-z\d_-]{0,31}$/.test(category)) {
    throw new OptionError(`the category of '${id}' is not a short name in small letters, such as "customer"`)
  }
  if (typeof replacement !== 'string' || !/^[\x21-\x7e](?:[\x20-\x7e]{0,62}[\x21-\x7e])?$/.test(replacement)) {
    throw new OptionError(`the replacement of '${id}' is not 1 to 64 printable ASCII characters, such as "[CUSTOMER]"`)
  }
  if (typeof pattern === 'string' && terms === undefined && typeof ignoreCase === 'boolean') {
    return { id, category, replacement, pattern, ignoreCase }
  }
  if (pattern !== undefined || fields.ignoreCase !== undefined || !Array.isArray(terms)) {
    throw new OptionError(`'${id}' needs either a pattern (with ignoreCase: true or false) or a list of terms`)
  }
  if (terms.length === 0 || terms.length > TERMS_MAX || !terms.every((term) => typeof term === 'string')) {
    throw new OptionError(`the terms of '${id}' are not 1 to ${TERMS_MAX} strings`)
  }
  return { id, category, replacement, terms }
}

export function compileUserRule(rule: UserRule): Rule {
  const { id, category, replacement } = rule
  if ('pattern' in rule) {
    const find = compilePattern(rule.pattern.normalize('NFKC'), { ignoreCase: rule.ignoreCase ?? false })
    return { id, category, replacement, exact: true, find }
  }
  return { id, category, replacement, exact: true, find: compileTerms(id, rule.terms) }
}

/** By their first words, so that the number of terms costs nothing where none of them starts. */
function compileTerms(id: string, terms: readonly string[]): (text: string) => Span[] {
  // Made here, as in pattern.ts: without rules of users no text needs them.
  const letter = '[\\p{L}\\p{N}_]'
  const wordsIn = new RegExp(`${letter}+`, 'gu')
  const endsInLetter = new RegExp(`${letter}$`, 'u')
  const byFirst = new Map<string, RegExp[]>()
  for (const term of terms) {
    const words = viewOf(term).exact.trim().split(/\s+/)
    const first = new RegExp(`^${letter}+`, 'u').exec(words[0] ?? '')?.[0].toLowerCase()
    if (first === undefined || term.length > 200) {
      throw new OptionError(`a term of '${id}' does not start with a letter or digit, or is longer than 200 characters`)
    }
    const source = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('\\s{1,8}')
    const whole = new RegExp(`${source}${endsInLetter.test(term.trim()) ? `(?!${letter})` : ''}`, 'iuy')
    byFirst.set(first, [...(byFirst.get(first) ?? []), whole])
  }
  return (text) => {
    const spans: Span[] = []
    for (const { 0: word, index } of text.matchAll(wordsIn)) {
      for (const term of byFirst.get(word.toLowerCase()) ?? []) {
        term.lastIndex = index
        if (term.test(text)) spans.push({ start: index, end: term.lastIndex })
      }
    }
    return spans
  }
}
