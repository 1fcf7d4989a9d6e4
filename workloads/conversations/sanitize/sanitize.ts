import { CONTACT_RULES } from './contact-rules.ts'
import { CREDENTIAL_RULES } from './credential-rules.ts'
import { NUMBER_RULES } from './number-rules.ts'
import type { Rule, RuleFinding, Sanitize, Span } from './rule.ts'
import { TOKEN_RULES } from './token-rules.ts'
import { plainView, type View } from './view.ts'

/** Changes whenever a built-in rule does. */
export const SANITIZATION_VERSION = '1'

/** In order of precedence: where two overlap, the first one's replacement stands for both. */
export const BUILT_IN_RULES: readonly Rule[] = [...TOKEN_RULES, ...CREDENTIAL_RULES, ...NUMBER_RULES, ...CONTACT_RULES]

export interface SanitizerOptions {
  readonly rules?: readonly Rule[]
}

interface Found extends Span {
  readonly rule: Rule
}

/** Sanitised text again gives the same text: replacements are found by no rule. */
export function createSanitizer(options: SanitizerOptions = {}): Sanitize {
  const rules = [...(options.rules ?? []), ...BUILT_IN_RULES]
  const marks = new Set(rules.map((rule) => rule.replacement))
  return (text) => {
    const findings: RuleFinding[] = []
    let current = text
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const view = plainView(current)
      const found = merge(findAll(rules, view), current, marks)
      if (found.length === 0) break
      current = replace(current, found, findings)
    }
    return { text: current, findings, version: SANITIZATION_VERSION }
  }
}

const ROUNDS_MAX = 4

function findAll(rules: readonly Rule[], view: View): Found[] {
  return rules.flatMap((rule) =>
    rule.find(view.text).map(({ start, end }) => ({ rule, start: view.startOf(start), end: view.endOf(end) })),
  )
}

/** Overlapping places become one. */
function merge(found: readonly Found[], text: string, marks: ReadonlySet<string>): Found[] {
  const merged: Found[] = []
  for (const place of found.toSorted((a, b) => a.start - b.start)) {
    if (isMarked(text.slice(place.start, place.end), marks)) continue
    const last = merged.at(-1)
    if (last === undefined || place.start >= last.end) merged.push(place)
    else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, place.end), rule: last.rule }
  }
  return merged
}

/** True for a place that holds nothing but earlier replacements. */
function isMarked(snippet: string, marks: ReadonlySet<string>): boolean {
  if (marks.has(snippet)) return true
  let rest = snippet
  for (const mark of marks) rest = rest.replaceAll(mark, '')
  return rest !== snippet && !/[\p{L}\p{N}]/u.test(rest)
}

function replace(text: string, found: readonly Found[], findings: RuleFinding[]): string {
  let replaced = ''
  let from = 0
  for (const { rule, start, end } of found) {
    replaced += text.slice(from, start) + rule.replacement
    findings.push({
      rule: rule.id,
      category: rule.category,
      replacement: rule.replacement,
      snippet: text.slice(start, end),
    })
    from = end
  }
  return replaced + text.slice(from)
}
