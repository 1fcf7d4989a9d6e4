/** Secrets that are told by what stands before them: names of variables, headers, addresses with a password. */
import { type Rule, type Span, spansOf } from './rule.ts'
import { findTold } from './told-rule.ts'

const KEY_NAME =
  /(?:(pass(?:word|wd|phrase|code)|(?<![a-z])pass|passwort|kennwort|contrase[nñ]a|mot[_ -]de[_ -]passe|п[аa][рp][оo]ль|パスワード|密码|密碼|pwd|(?<![a-z])pw)|secret(?:[_-]?access)?(?:[_-]?key)?|(?:api|access|auth|private|priv|signing|encryption|account|master|client|app|storage)[_ -]?(?:key|secret|token)|token|credentials?|(?<![a-z])(?:sig|signature|authorization|auth))(?:[_-]?(?:value|hash|\d))?["'`\])\\]{0,9}\s{0,2}$/i
/** What may stand before `:`, `=`, `=>`, `:=`, and what is longest looked at. */
const NAME_MAX = 48

/** Values that name a type, a variable or nothing: `token: string`, `password = null`, `secret: <your secret>`. */
const NO_VALUE =
  /^(?:string|number|boolean|bool|str|int|integer|bytes|any|unknown|object|null|undefined|none|nil|true|false|void|optional|required|text|varchar|secret|token|password|passwd|bearer|basic|process|env|redacted|example|placeholder|await|new|function|async|readonly|self|this|not|x{3,}|\*+|\.{3,}|-+|_+|(?:[A-Z]\w{2,9})?Array|Buffer|same-origin|include|omit|(?:your|my|the)[-_ ].{0,40}|![A-Za-z]+)$/i
const CODE = /^(?:[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$#]|\(|\[|<|\?\?|!\.|::|->)|[$%{<([|&]|=>|\.\.\.)/
const WORD = /^[A-Za-z_$\u00a1-\uffff]+$/
/** `password: 'Password is required'` is what a form says. */
const PROSE = /^[A-Za-z' ]{0,60}\b(?:is|are|must|should|required|please|invalid|incorrect|cannot|does|do)\b/i
const DIGITS = /^\d{1,5}$/

/** A & ends a value only where another one follows it. */
const UNQUOTED = /(?:[^\s,;'"`&)}\]<>]|&(?!\w{1,32}=|amp;)){1,256}/y

interface Value {
  readonly start: number
  readonly end: number
  readonly quoted: boolean
}

/** What stands behind the sign at `at`. */
function valueAt(text: string, at: number): Value | null {
  let start = at
  while (start < at + 4 && (text[start] === ' ' || text[start] === '\t')) start++
  // JSON within JSON: the quote has backslashes before it, and the one that closes has as many.
  let escapes = 0
  while (escapes < 8 && text[start + escapes] === '\\') escapes++
  const quote = text[start + escapes] ?? ''
  if (quote === '"' || quote === "'" || quote === '`') {
    const open = start + escapes + 1
    for (let end = open; end < text.length && end - open < 512 && text[end] !== '\n'; end++) {
      if (text[end] === '\\' && escapes === 0) end++
      else if (text[end] === quote) return { start: open, end: Math.max(open, end - escapes), quoted: true }
    }
    // A quote without an end: what follows without a blank.
    start = open
  }
  UNQUOTED.lastIndex = start
  const end = UNQUOTED.test(text) ? UNQUOTED.lastIndex : start
  return end === start ? null : { start, end, quoted: false }
}

/** No name in code has so many digits among letters of both sizes. */
function isRandom(part: string): boolean {
  return (
    part.length >= 20 && /^[\w-]+$/.test(part) && /[a-z]/.test(part) && /(?:\d\D*){3}/.test(part) && /[A-Z]/.test(part)
  )
}

function isSecret(value: string, quoted: boolean, isPassword: boolean, tight: boolean): boolean {
  const bare = value.replace(/[.:]+$/, '')
  if (bare.length < 3 || NO_VALUE.test(bare) || /\$\{|^(?:\{\{|<|%[A-Z_]+%$)/.test(bare)) return false
  if (quoted && PROSE.test(bare)) return false
  if (quoted) return isPassword ? true : !/\s/.test(bare) && bare.length >= 6
  if (CODE.test(bare)) return bare.split('.').some(isRandom)
  if (DIGITS.test(bare)) return isPassword && bare.length >= 4
  // A word alone is a variable or a type, except in `password=hunter` as in a shell, an address or an .ini file.
  if (WORD.test(bare))
    return isPassword ? tight && bare.length >= 4 : tight && bare.length >= 8 && !/^[A-Z]?[a-z]+$/.test(bare)
  return bare.length >= (isPassword ? 4 : 6)
}

const SIGN = /(?<=[\w"'`\]) \u00a1-\uffff])[:=](?:=|>){0,2}/g

/** An earlier replacement, such as [SECRET], is no name. */
const MARK = /\[[A-Z_]+\]\s{0,2}$/

/** `apiKey: string = '…'`, `api_key: str = '…'`. */
const TYPE = /(?<=[\w\])?]):\s{0,2}&?[A-Za-z][\w.<>]{0,20}(?:\s?\|\s?\w{1,20})?\s{0,2}$/
/** name: DB_PASSWORD, value: …, as in XML and in the settings of containers. */
const NAMED = /\b(?:name|key)["']?\s{0,2}[:=]\s{0,2}["']?([\w.-]{1,64})["']?[\s,]{1,24}["']?value["']?\s{0,2}$/i

function nameBefore(text: string, sign: number): RegExpExecArray | null {
  const before = text.slice(Math.max(0, sign - NAME_MAX), sign)
  if (MARK.test(before)) return null
  const name = KEY_NAME.exec(before) ?? (text[sign] === '=' ? KEY_NAME.exec(before.replace(TYPE, '')) : null)
  if (name !== null || !/value["']?\s{0,2}$/i.test(before)) return name
  const named = NAMED.exec(text.slice(Math.max(0, sign - 3 * NAME_MAX), sign))?.[1]
  return named === undefined ? null : KEY_NAME.exec(named)
}

function findAssigned(text: string): Span[] {
  const spans: Span[] = []
  for (const { start: sign, end: behind } of spansOf(SIGN, text)) {
    if (sign < (spans.at(-1)?.end ?? 0)) continue
    const name = nameBefore(text, sign)
    const value = name === null ? null : valueAt(text, behind)
    if (name === null || value === null) continue
    const tight = value.start === sign + 1 && /\w/.test(text[sign - 1] ?? '')
    const secret = isSecret(text.slice(value.start, value.end), value.quoted, name[1] !== undefined, tight)
    if (secret) spans.push({ start: value.start, end: value.end })
  }
  return spans
}

const HEADER =
  /\b(?:authorization["'`]?\s{0,2}[:=]\s{0,2}["'`]?(?:bearer|basic|token|digest|apikey)|bearer|x-api-key["'`]?\s{0,2}[:=])\s{1,2}["'`]?([A-Za-z\d._~+/=:-]{8,})/dgi
const USER_FLAG = /(?<=\s)(?:-u|--user|--proxy-user)[ =]["']?(?!\d+:\d+(?:\s|$))([^\s:"'$]{1,64}:[^\s"'$]{1,128})/dg

function findHeader(text: string): Span[] {
  // "a bearer certificate" is a sentence.
  return spansOf(
    HEADER,
    text,
    (match) => /\d|[A-Z].*[a-z].*[A-Z]/.test((match[1] ?? '').slice(0, 64)) || /^authorization/i.test(match[0]),
    1,
  )
}

const SERVICE_USER = /^(?:git|hg|svn|user|username)$/i
const AUTHORITY = /[^\s"'`<>/?#]{0,512}/y
/** A password may hold a / or a #, unencoded; host:8080/x@y is an address with a port. */
const LONG_AUTHORITY = /[^\s"'`<>:/?#]{0,64}:(?!\d{1,5}(?:[/?#]|$)|\/)[^\s"'`<>]{0,256}/y

/** scheme://user:password@host: the part before the @ goes, the host stays. */
function findUserInfo(text: string): Span[] {
  const spans: Span[] = []
  for (let sign = text.indexOf('://'); sign !== -1; sign = text.indexOf('://', sign + 3)) {
    const start = sign + 3
    if (!/[A-Za-z\d]/.test(text[sign - 1] ?? '')) continue
    const length = userInfoLength(text, start, AUTHORITY) || userInfoLength(text, start, LONG_AUTHORITY)
    if (length > 0 && !SERVICE_USER.test(text.slice(start, start + length))) spans.push({ start, end: start + length })
  }
  return spans
}

/** 0 if there is no @. */
function userInfoLength(text: string, start: number, pattern: RegExp): number {
  pattern.lastIndex = start
  const run = pattern.exec(text)?.[0] ?? ''
  const next = run.indexOf('://')
  return Math.max(0, (next === -1 ? run : run.slice(0, next)).lastIndexOf('@'))
}

/** Part of every name and word above. Without one, three patterns need not be compiled. */
const WORDS_HINT =
  /pass|pw|secret|token|key|credential|sig|auth|bearer|kennwort|contrase|mot[_ -]de|cookie|mysql|mariadb|login|identified|sess|\.sid|п|パスワード|密码|密碼/i

export const CREDENTIAL_RULES: readonly Rule[] = [
  { id: 'connection-string', category: 'secret', replacement: '[CREDENTIALS]', find: findUserInfo },
  { id: 'authorization', category: 'secret', replacement: '[SECRET]', hint: WORDS_HINT, find: findHeader },
  {
    id: 'user-flag',
    category: 'secret',
    replacement: '[CREDENTIALS]',
    find: (text) => spansOf(USER_FLAG, text, undefined, 1),
  },
  { id: 'assignment', category: 'secret', replacement: '[SECRET]', hint: WORDS_HINT, find: findAssigned },
  {
    id: 'told',
    category: 'secret',
    replacement: '[SECRET]',
    hint: WORDS_HINT,
    find: findTold,
  },
]
