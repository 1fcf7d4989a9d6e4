/** Names of people, by word lists and by what stands around them. Linear in the length of the text. */
import { AMBIGUOUS_FIRST_NAMES, FIRST_NAMES, IDENTIFIER_WORDS, SURNAMES, TOOL_NAMES } from './name-lists.ts'

export interface FoundName {
  readonly snippet: string
  readonly confidence: number
  readonly category: 'name' | 'username'
}

/** A word of a name as it is written in prose. */
const WORD = String.raw`\p{Lu}[\p{L}\p{M}'’-]{1,30}`
/** Not in the middle of a word or identifier. */
const START = String.raw`(?<![\p{L}\p{N}_])`

/** A name follows, whatever it is. The first group is the name. */
const INTRODUCED = [
  String.raw`(?i:(?:my|his|her|their|whose) name(?: is|'s|:))[ \t]+(${WORD}(?:[ \t]${WORD}){0,2})`,
  String.raw`(?i:author|co-authored-by|signed-off-by|reported-by|reviewed-by|assignee|customer|patient|employee):[ \t]*(${WORD}(?:[ \t]${WORD}){1,2})`,
  String.raw`(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau)\.?[ \t]+(${WORD}(?:[ \t]${WORD}){0,2})`,
].map((pattern) => new RegExp(START + pattern, 'gu'))

/** Two words of a name beside each other. The second is looked at only, so it can be the first of the next pair. */
const PAIR = new RegExp(String.raw`${START}(${WORD})(?=([ \t]+)(${WORD}))`, 'gu')

const VERBS_BEFORE =
  'hi|hello|hey|dear|thanks|regards|cheers|cc|ask|asked|told|tell|emailed|called|met|according to|assigned to|written by|forwarded by|spoke to|talked to|talk to|paired with|meeting with|ping'
const AFTER =
  'said|says|told|asked|wrote|thinks|mentioned|suggested|complained|reported|reviewed|called|emailed|approved|joined|left|prefers|wants'
const OWNED =
  'laptop|machine|phone|account|desk|address|birthday|salary|branch|wife|husband|team|password|calendar|home'

/** A first name alone counts where only a person can stand. */
const PERSON_HERE = [
  String.raw`(?i:${VERBS_BEFORE}),?\s{1,3}(${WORD})`,
  String.raw`(${WORD})[ \t](?:${AFTER})(?![\p{L}\p{N}_])`,
  String.raw`(${WORD}['’]s)[ \t](?:${OWNED})(?![\p{L}\p{N}_])`,
].map((pattern) => new RegExp(START + pattern, 'gu'))

/** Every name once, with its highest confidence. */
export function findNames(text: string): readonly FoundName[] {
  const found = new Map<string, FoundName>()
  const add = (one: FoundName): void => {
    if ((found.get(one.snippet)?.confidence ?? 0) < one.confidence) found.set(one.snippet, one)
  }
  for (const name of matchesOf(text, INTRODUCED)) {
    if (!isTool(name)) add({ snippet: name, confidence: 0.85, category: 'name' })
  }
  for (const [, first = '', gap = '', second = ''] of text.matchAll(PAIR)) {
    const last = withoutPossessive(second)
    const confidence = pairConfidence(plain(first), plain(last))
    if (confidence > 0) add({ snippet: `${first}${gap}${last}`, confidence, category: 'name' })
  }
  for (const name of matchesOf(text, PERSON_HERE)) {
    if (FIRST_NAMES.has(plain(name))) add({ snippet: name, confidence: 0.7, category: 'name' })
  }
  for (const one of namesInIdentifiers(text)) add(one)
  return [...found.values()]
}

function matchesOf(text: string, patterns: readonly RegExp[]): readonly string[] {
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, name = '']) => withoutPossessive(name)))
}

/** As the lists have it: in lower case and without accents. */
function plain(word: string): string {
  return word.toLowerCase().normalize('NFD').replaceAll(/\p{M}/gu, '')
}

/** A word, without `'s`, that a finding should not contain. */
export function withoutPossessive(word: string): string {
  return word.replace(/['’]s?$/, '')
}

/** Whether it is a tool or product, such as `Jenkins` or `Maria DB`. */
export function isTool(name: string): boolean {
  const words = name.toLowerCase().split(/[\s-]+/)
  return (
    words.some((word) => TOOL_NAMES.has(word)) &&
    words.every((word) => TOOL_NAMES.has(word) || IDENTIFIER_WORDS.has(word))
  )
}

/** 0 when the two words are no name. */
function pairConfidence(first: string, last: string): number {
  const isFirst = FIRST_NAMES.has(first)
  if (SURNAMES.has(last) && (isFirst || AMBIGUOUS_FIRST_NAMES.has(first))) return 0.9
  // `Maria Kowalczyk`, but not `Maria DB`, `Julia Language` or `Peter Server`.
  return isFirst && last.length > 2 && !TOOL_NAMES.has(last) && !IDENTIFIER_WORDS.has(last) ? 0.75 : 0
}

const IDENTIFIER = /[A-Za-z0-9_.-]+/g
/** Words of an identifier: `emailJaneDoe` has three, `john_smith` two. */
const HUMP = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g

interface Hump {
  readonly word: string
  readonly start: number
  readonly end: number
}

/** Names that look like variables, files or branches: `john_smith_password`, `emailJaneDoe`, `feature/jane-doe-login`. */
function namesInIdentifiers(text: string): readonly FoundName[] {
  return [...text.matchAll(IDENTIFIER)].flatMap(([identifier]) => {
    if (identifier.length < 5) return []
    const humps = [...identifier.matchAll(HUMP)].map(({ 0: word, index }): Hump => {
      return { word: word.toLowerCase(), start: index, end: index + word.length }
    })
    if (humps.length === 1) return initialAndSurname(identifier)
    return humps.flatMap((first, at) => {
      const second = humps[at + 1]
      // A digit or two separators between them: they do not belong together.
      if (second === undefined || second.start - first.end > 1) return []
      const confidence = identifierConfidence(first.word, second.word)
      if (confidence === 0) return []
      return [{ snippet: identifier.slice(first.start, second.end), confidence, category: 'name' as const }]
    })
  })
}

function identifierConfidence(first: string, second: string): number {
  const known = FIRST_NAMES.has(first)
  if (SURNAMES.has(second) && (known || AMBIGUOUS_FIRST_NAMES.has(first))) return 0.85
  if (SURNAMES.has(first) && FIRST_NAMES.has(second)) return 0.75
  const isWord = second.length < 4 || IDENTIFIER_WORDS.has(second) || TOOL_NAMES.has(second)
  return known && !TOOL_NAMES.has(first) && !isWord ? 0.5 : 0
}

/** `jsmith`. Short surnames would be found in ordinary words. */
function initialAndSurname(identifier: string): readonly FoundName[] {
  const isUser = /^[a-z]{6,}\d{0,4}$/.test(identifier) && SURNAMES.has(identifier.slice(1).replace(/\d+$/, ''))
  return isUser ? [{ snippet: identifier, confidence: 0.6, category: 'username' }] : []
}
