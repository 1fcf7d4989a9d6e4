/** Finding and replacing with a list of rules. The hook is built from this file too: it has no rules of users in it. */
import { OptionError } from '../../../src/errors.ts'
import { CONTACT_RULES } from './contact-rules.ts'
import { CREDENTIAL_RULES } from './credential-rules.ts'
import { ENCODED_MIN, findEncoded } from './encoded.ts'
import { NUMBER_RULES } from './number-rules.ts'
import type { Rule, RuleFinding, Sanitize, Span } from './rule.ts'
import { TOKEN_RULES } from './token-rules.ts'
import { hasEscapes, NEEDS, type Traits, traitsOf } from './traits.ts'
import { decoded, joined, type View, viewOf } from './view.ts'

/** Changes whenever a built-in rule does. */
export const SANITIZATION_VERSION = '1'

/** In order of precedence: where two overlap, the first one's replacement stands for both. */
export const BUILT_IN_RULES: readonly Rule[] = [...TOKEN_RULES, ...CREDENTIAL_RULES, ...NUMBER_RULES, ...CONTACT_RULES]

interface Found extends Span {
  readonly rule: Rule
}

type Stage = (view: View, traits: Traits) => readonly Found[]

/** Findings can make others visible, such as a token behind a token. A text that needs more rounds was made to hide something. */
const ROUNDS_MAX = 12
const REMOVED = '[REMOVED]'

/** The rules in order of precedence. `version` is that of these rules. */
export function sanitizerOf(rules: readonly Rule[] = BUILT_IN_RULES, version: string = SANITIZATION_VERSION): Sanitize {
  const marks = marksOf(rules)
  const stages = stagesOf(rules)
  return (text) => {
    const findings: RuleFinding[] = []
    let current = text
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const found = firstFound(stages, current, marks)
      if (found.length === 0) return { text: current, findings, version }
      current = replace(current, found, findings)
    }
    // Nothing of it is kept, rather than a part that is still found.
    findings.push({ rule: 'rounds', category: 'secret', replacement: REMOVED, snippet: current })
    return { text: REMOVED, findings, version }
  }
}

/** Whether any of the rules finds something. */
export function isFound(rules: readonly Rule[], text: string): boolean {
  return firstFound(stagesOf(rules), text, []).length > 0
}

function marksOf(rules: readonly Rule[]): readonly string[] {
  const ids = new Set<string>()
  for (const { id } of rules) {
    if (ids.has(id)) throw new OptionError(`two rules have the id '${id}'; rename one`)
    ids.add(id)
  }
  return [...new Set(rules.map((rule) => rule.replacement))]
}

/** Each is tried only when the one before has nothing left, so that a token does not take in the line behind it. */
function stagesOf(rules: readonly Rule[]): readonly Stage[] {
  const acrossLines = rules.filter((rule) => rule.acrossLines)
  // Together: of jo\u200bhn@example.com the text as written has only a part.
  const plain: Stage = (view, traits) => [
    ...findAll(rules, view, traits),
    ...placed(hasEscapes(view.exact) ? decoded(view) : null, (inner) => findAll(rules, inner)),
  ]
  const inDecoded = (text: string): readonly Found[] => {
    const view = viewOf(text)
    const found = plain(view, traitsOf(view.text))
    return found.length > 0 ? found : findEncoded(view.text, (inner) => findAll(rules, viewOf(inner)))
  }
  return [
    plain,
    (view) => placed(view.exact.includes('\n') ? joined(view) : null, (inner) => findAll(acrossLines, inner)),
    (view, { run }) => (run < ENCODED_MIN ? [] : inOriginal(findEncoded(view.text, inDecoded), view)),
  ]
}

function placed(view: View | null, find: (view: View) => readonly Found[]): readonly Found[] {
  return view === null ? [] : find(view)
}

/** In order of the rules. */
function findAll(rules: readonly Rule[], view: View, traits: Traits = traitsOf(view.text)): Found[] {
  const hinted = new Map<RegExp, boolean>()
  const isHinted = (hint: RegExp): boolean => {
    const known = hinted.get(hint) ?? hint.test(view.text)
    hinted.set(hint, known)
    return known
  }
  return rules.flatMap((rule) => {
    if (NEEDS[rule.id]?.(traits) === false || (rule.hint !== undefined && !isHinted(rule.hint))) return []
    const written = rule.exact && view.exact !== view.text ? rule.find(view.exact) : []
    const spans = [...rule.find(view.text), ...written]
    return inOriginal(
      spans.map(({ start, end }) => ({ rule, start, end })),
      view,
    )
  })
}

function inOriginal(found: readonly Found[], view: View): Found[] {
  return found.map(({ rule, start, end }) => ({ rule, start: view.startOf(start), end: view.endOf(end) }))
}

function firstFound(stages: readonly Stage[], text: string, marks: readonly string[]): readonly Found[] {
  const view = viewOf(text)
  const traits = traitsOf(view.text)
  for (const stage of stages) {
    const found = merged(stage(view, traits).filter((place) => !isMarked(text, place, marks)))
    if (found.length > 0) return found
  }
  return []
}

/** Overlapping places become one, with the rule that comes first in the list. */
function merged(found: readonly Found[]): readonly Found[] {
  const ranks = new Map(found.map((place, rank) => [place, rank]))
  const places: Found[] = []
  let rank = 0
  for (const place of found.toSorted((one, other) => one.start - other.start)) {
    const last = places.at(-1)
    const own = ranks.get(place) ?? 0
    if (last === undefined || place.start >= last.end) {
      places.push(place)
      rank = own
      continue
    }
    places[places.length - 1] = {
      start: last.start,
      end: Math.max(last.end, place.end),
      rule: own < rank ? place.rule : last.rule,
    }
    rank = Math.min(rank, own)
  }
  return places
}

/** True for a place inside an earlier replacement, and for one that holds nothing else. */
function isMarked(text: string, { start, end }: Span, marks: readonly string[]): boolean {
  const snippet = text.slice(start, end)
  let rest = snippet
  for (const mark of marks) {
    for (let at = mark.indexOf(snippet); at !== -1; at = mark.indexOf(snippet, at + 1)) {
      if (text.startsWith(mark, start - at)) return true
    }
    if (rest.includes(mark)) rest = rest.replaceAll(mark, '')
  }
  return rest !== snippet && !/[A-Za-z\d\u00a1-\uffff]/.test(rest)
}

function replace(text: string, found: readonly Found[], findings: RuleFinding[]): string {
  let replaced = ''
  let from = 0
  for (const { rule, start, end } of found) {
    replaced += text.slice(from, start) + rule.replacement
    const { id, category, replacement } = rule
    findings.push({ rule: id, category, replacement, snippet: text.slice(start, end) })
    from = end
  }
  return replaced + text.slice(from)
}
