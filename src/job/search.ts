/** The language of searches: `type:send-email error:ECONNREFUSED since:1h`. All terms of a search must hold. */
import { OptionError } from '../errors.ts'
import { parseDurationMs } from '../time/duration.ts'
import { nearest } from './known-options.ts'
import { JOB_STATES, type JobState } from './states.ts'

/** A field of the payload by its path, and the value that it must have as text. */
export interface PayloadTerm {
  readonly path: readonly string[]
  readonly value: string
}

/** A search, read from its text. Every part must hold; an empty one holds for every job. */
export interface JobSearch {
  readonly id?: string
  readonly type?: string
  readonly state?: JobState
  /** A key or a latest key. */
  readonly key?: string
  /** An organisation, or an organisation and a workspace with a slash between them. */
  readonly tenant?: string
  readonly tags: readonly string[]
  /** Parts of the error's name, code or message, in any case. */
  readonly errors: readonly string[]
  readonly payload: readonly PayloadTerm[]
  /** Parts of the id, type, name, key, tenant, a tag or the error, in any case. */
  readonly words: readonly string[]
  /** Enqueued at this time or later; of a dead letter: died. */
  readonly sinceMs?: number
  /** Enqueued before this time; of a dead letter: died. */
  readonly untilMs?: number
}

/** What stands before the colon of a term, beside `payload.` and a path. */
export const SEARCH_FIELDS = ['id', 'type', 'state', 'key', 'tenant', 'tag', 'error', 'since', 'until'] as const
type SearchField = (typeof SEARCH_FIELDS)[number]

const FIELDS_SHOWN = `${SEARCH_FIELDS.join(', ')} and payload.<field>`
const PAYLOAD = 'payload.'
export const SEARCH_LENGTH_MAX = 500
const TERMS_MAX = 20

const NO_TERMS: JobSearch = { tags: [], errors: [], payload: [], words: [] }

/** Reads a search. Times such as `1h` count back from `nowMs`. */
export function parseSearch(text: string, nowMs: number): JobSearch {
  if (text.length > SEARCH_LENGTH_MAX)
    throw new OptionError(`the search is longer than ${SEARCH_LENGTH_MAX} characters`)
  const terms = termsOf(text)
  if (terms.length > TERMS_MAX) throw new OptionError(`the search has more than ${TERMS_MAX} terms; give fewer`)
  return terms.reduce((search, term) => withTerm(search, term, nowMs), NO_TERMS)
}

interface Term {
  /** Null for a free word. */
  readonly field: string | null
  readonly value: string
}

const TERM = /(?:([^\s:"]+):)?(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))?/y

function termsOf(text: string): readonly Term[] {
  const terms: Term[] = []
  for (let at = 0; at < text.length; ) {
    TERM.lastIndex = at
    const [whole = '', field = null, quoted, plain] = TERM.exec(text) ?? []
    if (text[at]?.trim() === '') {
      at += 1
      continue
    }
    const value = quoted === undefined ? (plain ?? '') : quoted.replaceAll(/\\(.)/g, '$1')
    if (whole === '' || (value === '' && text[at + whole.length] === '"')) {
      throw new OptionError(`a quote in the search is not closed; add the second one`)
    }
    if (value === '') throw new OptionError(field === null ? `the search has an empty term` : emptyTerm(field))
    terms.push({ field, value })
    at += whole.length
  }
  return terms
}

function emptyTerm(field: string): string {
  const known = SEARCH_FIELDS.some((one) => one === field) || field.startsWith(PAYLOAD)
  return known ? `'${field}:' has no value; write it after the colon, without a space` : unknownField(field)
}

function unknownField(field: string): string {
  const near = nearest(field, SEARCH_FIELDS)
  const hint = near === null ? 'the' : `did you mean '${near}'? The`
  return `'${field}' is not a field of a search; ${hint} fields are ${FIELDS_SHOWN}. Put other words with a colon in quotes`
}

function withTerm(search: JobSearch, { field, value }: Term, nowMs: number): JobSearch {
  if (field === null) return { ...search, words: [...search.words, value] }
  if (field.startsWith(PAYLOAD)) {
    const path = field.slice(PAYLOAD.length).split('.')
    if (path.includes('')) throw new OptionError(`'${field}' is no path; write one such as payload.customer.id`)
    return { ...search, payload: [...search.payload, { path, value }] }
  }
  const known = SEARCH_FIELDS.find((one) => one === field)
  if (known === undefined) throw new OptionError(unknownField(field))
  return withField(search, known, value, nowMs)
}

function withField(search: JobSearch, field: SearchField, value: string, nowMs: number): JobSearch {
  switch (field) {
    case 'tag':
      return { ...search, tags: [...search.tags, value] }
    case 'error':
      return { ...search, errors: [...search.errors, value] }
    case 'state':
      return { ...once(search, field, field), state: toState(value) }
    case 'since':
      return { ...once(search, field, 'sinceMs'), sinceMs: toTime(field, value, nowMs) }
    case 'until':
      return { ...once(search, field, 'untilMs'), untilMs: toTime(field, value, nowMs) }
    case 'id':
    case 'type':
    case 'key':
    case 'tenant':
      return { ...once(search, field, field), [field]: value }
    default:
      return field satisfies never
  }
}

function once(search: JobSearch, field: SearchField, name: keyof JobSearch): JobSearch {
  if (search[name] === undefined) return search
  throw new OptionError(`the search has '${field}' twice, and all of its terms must hold; give it once`)
}

function toState(value: string): JobState {
  const state = JOB_STATES.find((one) => one === (value === 'dead' ? 'dead_letter' : value))
  if (state !== undefined) return state
  throw new OptionError(`'state' is '${value}'; give one of dead, ${JOB_STATES.join(', ')}`)
}

const DATE_OR_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

function toTime(field: SearchField, value: string, nowMs: number): number {
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(value)) return nowMs - parseDurationMs(value, field)
  const ms = DATE_OR_TIME.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isFinite(ms)) return ms
  throw new OptionError(
    `'${field}' is '${value}'; give how long ago, such as 30m, 1h or 7d, or a time such as 2030-01-31 or 2030-01-31T09:00Z`,
  )
}

/** The text of a search without its times: the opposite of `parseSearch`. Empty for one of times alone. */
export function formatSearch(search: JobSearch): string {
  const { id, type, state, key, tenant } = search
  const fields = Object.entries({ id, type, state, key, tenant }).flatMap(([field, value]) =>
    value === undefined ? [] : [`${field}:${quoted(value)}`],
  )
  return [
    ...fields,
    ...search.tags.map((tag) => `tag:${quoted(tag)}`),
    ...search.errors.map((error) => `error:${quoted(error)}`),
    ...search.payload.map(({ path, value }) => `${PAYLOAD}${path.join('.')}:${quoted(value)}`),
    ...search.words.map((word) => (word.includes(':') ? inQuotes(word) : quoted(word))),
  ].join(' ')
}

function quoted(value: string): string {
  return /[\s"\\]/.test(value) ? inQuotes(value) : value
}

function inQuotes(value: string): string {
  return `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`
}
