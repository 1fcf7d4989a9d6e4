/** Secrets that are told by what stands before them: names of variables, headers, addresses with a password. */
import { type Rule, type Span, spansOf } from './rule.ts'

const KEY_NAME =
  /(?:(pass(?:word|wd|phrase|code)|(?<![a-z])pass|passwort|kennwort|contrase[nñ]a|mot[_ -]de[_ -]passe|pwd|(?<![a-z])pw)|secret(?:[_-]?access)?(?:[_-]?key)?|(?:api|access|auth|private|priv|signing|encryption|account|master|client|app|storage)[_ -]?(?:key|secret|token)|token|credentials?|(?<![a-z])(?:sig|signature|authorization|auth))(?:[_-]?(?:value|hash|\d))?["'`\])\\]{0,3}\s{0,2}$/i
/** What may stand before `:`, `=`, `=>`, `:=`, and what is longest looked at. */
const NAME_MAX = 48

/** Values that name a type, a variable or nothing: `token: string`, `password = null`, `secret: <your secret>`. */
const NO_VALUE =
  /^(?:string|number|boolean|bool|str|int|integer|bytes|any|unknown|object|null|undefined|none|nil|true|false|void|optional|required|text|varchar|secret|token|password|passwd|bearer|basic|process|env|redacted|example|placeholder|await|new|function|async|readonly|self|this|not|x{3,}|\*+|\.{3,}|-+|_+|(?:[A-Z]\w{2,9})?Array|Buffer|(?:your|my|the)[-_ ].{0,40})$/i
const CODE = /^(?:[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$#]|\(|\[|<|\?\?|!\.|::|->)|[$%{<([|&]|=>|\.\.\.)/
const WORD = /^[A-Za-z_$]+$/
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
  const escaped = text[start] === '\\' ? 1 : 0
  const quote = text[start + escaped] ?? ''
  if (quote === '"' || quote === "'" || quote === '`') {
    const open = start + escaped + 1
    for (let end = open; end < text.length && end - open < 512 && text[end] !== '\n'; end++) {
      if (text[end] === '\\' && escaped === 0) end++
      else if (text[end] === quote) return { start: open, end: end - escaped, quoted: true }
    }
    // A quote without an end: what follows without a blank.
    start = open
  }
  UNQUOTED.lastIndex = start
  const end = UNQUOTED.test(text) ? UNQUOTED.lastIndex : start
  return end === start ? null : { start, end, quoted: false }
}

function isSecret(value: string, quoted: boolean, isPassword: boolean, tight: boolean): boolean {
  const bare = value.replace(/[.:]+$/, '')
  if (bare.length < 3 || NO_VALUE.test(bare) || /\$\{|^(?:\{\{|<|%[A-Z_]+%$)/.test(bare)) return false
  if (quoted) return isPassword ? true : !/\s/.test(bare) && bare.length >= 6
  if (CODE.test(bare)) return false
  if (DIGITS.test(bare)) return isPassword && bare.length >= 4
  // A word alone is a variable or a type, except in `password=hunter` as in a shell, an address or an .ini file.
  if (WORD.test(bare))
    return isPassword ? tight && bare.length >= 4 : tight && bare.length >= 8 && !/^[A-Z]?[a-z]+$/.test(bare)
  return bare.length >= (isPassword ? 4 : 6)
}

const SIGN = /(?<=[\w"'`\]) \u00f1])[:=](?:=|>){0,2}/g

/** An earlier replacement, such as [SECRET], is no name. */
const MARK = /\[[A-Z_]+\]\s{0,2}$/

function findAssigned(text: string): Span[] {
  const spans: Span[] = []
  for (const { start: sign, end: behind } of spansOf(SIGN, text)) {
    if (sign < (spans.at(-1)?.end ?? 0)) continue
    const before = text.slice(Math.max(0, sign - NAME_MAX), sign)
    const name = MARK.test(before) ? null : KEY_NAME.exec(before)
    const value = name === null ? null : valueAt(text, behind)
    if (name === null || value === null) continue
    const tight = value.start === sign + 1 && /\w/.test(text[sign - 1] ?? '')
    const secret = isSecret(text.slice(value.start, value.end), value.quoted, name[1] !== undefined, tight)
    if (secret) spans.push({ start: value.start, end: value.end })
  }
  return spans
}

/** `--password hunter2`, `the password is hunter2!`: a digit or a sign within, else it is a sentence. */
const TOLD =
  /(?:--(?:[a-z]{1,20}-)?(?:password|passwd|token|secret|api-key)\s{1,2}|(?<!\[)\b(?:password|passwd|passphrase|passcode|passwort|pwd|secret|token|api key|access key|credentials?)\b[^\n=:'"`]{0,24}?\s(?:is|was|to|are|ist|lautet)(?: now)?:?\s{1,2})["'`]?(?=[^\s"'`]{0,60}[\d!@#$%^&*?+])([^\s"'`<>]{6,128}?)(?=["'`]|[.,;:!?)]{0,2}(?:\s|$))/dgi
const HEADER =
  /\b(?:authorization["'`]?\s{0,2}[:=]\s{0,2}["'`]?(?:bearer|basic|token|digest|apikey)|bearer|x-api-key["'`]?\s{0,2}[:=])\s{1,2}["'`]?([A-Za-z\d._~+/=:-]{8,})/dgi
const USER_FLAG = /(?<=\s)(?:-u|--user|--proxy-user)[ =]["']?([^\s:"'$]{1,64}:[^\s"'$]{1,128})/dg

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
const WORDS_HINT = /pass|pw|secret|token|key|credential|sig|auth|bearer|kennwort|contrase|mot[_ -]de/i

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
    find: (text) => spansOf(TOLD, text, undefined, 1),
  },
]
