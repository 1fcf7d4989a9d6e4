/** Mail addresses, phone numbers, network addresses, user names in paths. */
import { type Rule, type Span, spansOf } from './rule.ts'

/** Letters of every script are \u00a1-\uffff here: a pattern with \p{L} takes milliseconds to parse, and the hook starts each time. */
const LOCAL = /[\w.%+\u00a1-\uffff-]/
const DOMAIN = /[A-Za-z\d\u00a1-\uffff][A-Za-z\d.\u00a1-\uffff-]{0,251}/y
const TOP_LEVEL = /^(?:[A-Za-z\u00a1-\uffff]{2,63}|xn--[A-Za-z\d-]{2,59})$/
/** Ends of file names and of scoped packages' versions that stand after an @ and are no domain. */
const NO_DOMAIN = /^\d+(?:\.\d+)+|\.(?:png|jpe?g|gif|webp|svg|ico|js|ts|tsx|jsx|mjs|cjs|css|html|json|tgz)$/i
/** An address of a service, not of a person: git@github.com:owner/name. */
const SERVICE = /^(?:git|hg|svn)$/i
const LOCAL_MAX = 64

/** Where the local part that ends at `end` starts. The standard allows more signs, but in a text they belong to the text. */
function localStart(text: string, end: number): number {
  let start = end
  while (start > 0 && end - start < LOCAL_MAX && LOCAL.test(text[start - 1] ?? '')) start--
  while (start < end && /[.%-]/.test(text[start] ?? '')) start++
  // The n of a line break that is written as \n.
  if (text[start - 1] === '\\' && /[nrt]/.test(text[start] ?? '') && start + 1 < end) start++
  return start
}

function domainEnd(text: string, start: number): number {
  DOMAIN.lastIndex = start
  const run = DOMAIN.exec(text)?.[0] ?? ''
  let length = run.length
  while (length > 0 && (run[length - 1] === '.' || run[length - 1] === '-')) length--
  let domain = run.slice(0, length)
  const dot = domain.lastIndexOf('.')
  // ann@example.com-backup: the domain ends at the dash.
  const dash = domain.startsWith('xn--', dot + 1) ? -1 : domain.indexOf('-', dot + 1)
  if (dash !== -1) domain = domain.slice(0, dash)
  if (dot < 1 || !TOP_LEVEL.test(domain.slice(dot + 1))) return start
  return NO_DOMAIN.test(domain) || domain.includes('..') ? start : start + domain.length
}

/** user:password@host of an address, where the rule for those keeps the host. */
function isUserInfo(text: string, start: number): boolean {
  return /:\/\/[^\s/?#]{0,64}$/.test(text.slice(Math.max(0, start - 67), start))
}

function findMail(text: string): Span[] {
  const spans: Span[] = []
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    const start = localStart(text, at)
    const end = start === at ? at : domainEnd(text, at + 1)
    if (end > at + 1 && start < at && !SERVICE.test(text.slice(start, at)) && !isUserInfo(text, start))
      spans.push({ start, end })
  }
  return spans
}

const TLDS = new Set(
  (
    'com org net edu gov mil io dev app info biz me co ai xyz tech cloud online site de fr uk us ca eu es it nl ch at be se no dk ' +
    'fi pl cz pt ru ua jp cn kr in br mx ar au nz za ie gr hu ro bg hr sk si lt lv ee tr il'
  ).split(' '),
)
const SPELLED_HINT = /[\])}>]|\s@|@\s|[dD][oO][tT]/
/** john (at) example (dot) com; john at example dot com; john @ example . com. No flags i and u: they take 14 ms to compile. */
const SPELLED = (() => {
  const at = String.raw`(?:\s{0,2}[[({<]\s?(?:[aA][tT]|@)\s?[\])}>]\s{0,2}|\s{1,2}[aA][tT]\s{1,2}(?=[\w-]{1,63}\s{1,2}[dD][oO][tT]\s)|\s{1,2}@\s{0,2}|@\s{1,2})`
  const dot = String.raw`(?:\s{0,2}(?:[[({<]\s?(?:[dD][oO][tT]|\.)\s?[\])}>]|\.)\s{0,2}|\s{1,2}[dD][oO][tT]\s{1,2})`
  const local = String.raw`(?<![\w.%+\u00a1-\uffff-])[\w.%+\u00a1-\uffff-]{1,64}`
  return new RegExp(
    `${local}${at}[A-Za-z\\d-]{1,63}(?:${dot}[A-Za-z\\d-]{1,63}){0,3}${dot}([A-Za-z]{2,10})(?![\\w-])`,
    'g',
  )
})()

function findSpelledMail(text: string): Span[] {
  return spansOf(SPELLED, text, (match) => TLDS.has((match[1] ?? '').toLowerCase()))
}

const PHONE_WORD =
  /(?:(?<!\[)phone|\bt[eé]l\b|contact (?:number|no\b)|mobile|\bcell|\bfax\b|whats ?app|(?:call|ring|text|dial|reach|sms) (?:me|us|him|her|them|at|on)(?: at| on)?|telefon|handy|rufnummer|t[ée]l[ée]phone|m[óo]vil|celular|(?:my|his|her|their) number)\W{0,3}(?:\w{1,9}\W{1,5}){0,2}$/i
/** With a plus or 00 and a country code. */
const INTERNATIONAL =
  /(?<![\w+.])(?:\+|(?<!\d )00(?=[ -]?[1-9]\d{0,2}[ ()./-])[ -]?)\(?[1-9]\d{0,3}\)?(?:[ ()./-]{0,3}\d){6,13}(?!\w|\.\d)/g
/** (555) 123-4567, 555-123-4567, 1 555 123 4567; (11) 91234-5678; 138 1234 5678; 030/1234567; 06 12 34 56 78. Not in a row of numbers. */
const NATIONAL =
  /(?<![\w+.,:/-]|\d )(?:(?:1[ .-]?)?(?:\([2-9]\d\d\)[ .-]?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}|\(\d{2,5}\)[ -]?\d{3,5}[ -]?\d{3,5}|1[3-9]\d[ -]\d{4}[ -]\d{4}|\(?0[1-9]\d{0,4}\)?[ /-](?:\d[ /-]?){5,8}\d|0[1-9](?:[ .]\d\d){4})(?![\w-]|[.,:/]\d| \d)/g
/** The form alone tells it, so it may stand in a row: Ann,(555) 234-5678,555-234-5679. */
const GROUPED = /(?<![\w+./-])(?:\([2-9]\d\d\) ?|[2-9]\d\d-)[2-9]\d\d-\d{4}(?![\w-]|[./]\d)/g
const AFTER_WORD = /(?<![\w+.])\(?\d(?:[ ()./-]{0,2}\d){6,14}(?!\w|\.\d)/g
const DATE = /(?:^|\D)(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2})(?:\D|$)/

function findPhone(text: string): Span[] {
  const undated = (match: RegExpExecArray) => !DATE.test(match[0])
  const announced = (match: RegExpExecArray) => PHONE_WORD.test(text.slice(Math.max(0, match.index - 40), match.index))
  return [
    ...spansOf(INTERNATIONAL, text),
    ...spansOf(NATIONAL, text, undated),
    ...spansOf(GROUPED, text),
    ...spansOf(AFTER_WORD, text, (match) => undated(match) && announced(match)),
  ]
}

const OCTET = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)'
/** Not in a version with a name before or behind it, nor in the numbers of an SVG path; but in a list or a range. */
const IPV4 = new RegExp(
  `(?<![\\w.]|(?<!\\.\\d{1,3}|\\])-|(?<![A-Za-z])[achlmqstvACHLMQSTV]-?\\d{0,3}(?:\\.\\d{1,3})?,)${OCTET}(?:\\.${OCTET}){3}(?!\\w|\\.\\d|-(?!\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d)[a-z\\d])`,
  'g',
)
/** 1.2.3.4 is a version or a chapter when such a word or sign stands before it. */
const VERSION_BEFORE =
  /(?:\bv|version|\bver|release|\brev|revision|build|upgraded? to|section|chapter|clause|figure|table|§|[=<>]=|\^|~|[A-Z][A-Za-z]+\/)["'\s:=.v(]{0,4}$/i
/** Everybody's own machine, any address, and masks: they tell nothing about anybody. */
const NOBODYS = /^(?:127\.|0\.0\.0\.0$|255\.255\.)/

function findIpv4(text: string): Span[] {
  return spansOf(
    IPV4,
    text,
    (match) => !NOBODYS.test(match[0]) && !VERSION_BEFORE.test(text.slice(Math.max(0, match.index - 16), match.index)),
  )
}

const COLONS = /(?<![\w:.])(?:[\da-f]{0,4}:){2,7}[\da-f]{0,4}(?:%\w{1,16})?(?![\w:])/gi
const ROUTED = /^(?:2[\da-f]{3}|f[cd][\da-f]{2}|fe[89ab][\da-f]):/i

/** Eight groups, or fewer with one `::`. `a::b` is a name in C++ or Rust unless it starts as addresses do. */
function isIpv6(candidate: string): boolean {
  const groups = candidate.replace(/%.*/, '').split('::')
  const filled = groups.flatMap((part) => part.split(':')).filter((group) => group !== '').length
  // Eight groups of two digits are a fingerprint.
  if (groups.length === 1) return filled === 8 && /[\da-f]{3}/i.test(candidate) && !/^:|:$/.test(candidate)
  const whole = groups.every((part) => part === '' || !/^:|:$/.test(part))
  return groups.length === 2 && whole && filled <= 7 && (filled >= 3 || (filled >= 1 && ROUTED.test(candidate)))
}

const MAC =
  /(?<![\w:-])(?!(?:00[:-]){5}00|(?:ff[:-]){5}ff)[\da-f]{2}(?:(?::[\da-f]{2}){5}|(?:-[\da-f]{2}){5})(?![\w:-])/gi

/** The rest of the path stays. A name with a blank is taken whole only where a separator follows it. */
const HOME =
  /(?:(?<![\w.~\]-])|(?<=(?<![\w.])\/mnt\/[a-z])|(?<=file:\/\/)|(?<=(?:^|\s)-[A-Za-z])|(?<=(?:^|["'\s=(])\/[a-z]))(?:\/var)?\/(?:home|Users)\/([^\s/\\:*?"'`<>|()[\]{},;$]{1,64})/dg
const WINDOWS_HOME =
  /(?<![\w])[a-z]:(?:\\{1,4}|\/{1,2})(?:Users|Documents and Settings)(?:\\{1,4}|\/{1,2})([^\\/:*?"'`<>|\r\n%$[\]]{1,40}(?=[\\/])|[^\s\\/:*?"'`<>|%$()[\]{},;]{1,64})/dgi
const SHARED = /^(?:Shared|Public|Default(?: User)?|All Users|\.{1,3})$/i

function findHome(text: string): Span[] {
  const personal = (match: RegExpExecArray) => !SHARED.test(match[1] ?? '')
  return [...spansOf(HOME, text, personal, 1), ...spansOf(WINDOWS_HOME, text, personal, 1)]
}

export const CONTACT_RULES: readonly Rule[] = [
  { id: 'mail', category: 'email', replacement: '[EMAIL]', acrossLines: true, find: findMail },
  { id: 'mail-spelled', category: 'email', replacement: '[EMAIL]', hint: SPELLED_HINT, find: findSpelledMail },
  { id: 'phone', category: 'phone', replacement: '[PHONE]', hint: /\d/, find: findPhone },
  { id: 'ipv4', category: 'ip', replacement: '[IP]', hint: /\d\.\d{1,3}\.\d/, find: findIpv4 },
  {
    id: 'ipv6',
    category: 'ip',
    replacement: '[IP]',
    find: (text) => spansOf(COLONS, text, ({ 0: run }) => run.length > 4 && isIpv6(run)),
  },
  { id: 'mac', category: 'mac', replacement: '[MAC]', find: (text) => spansOf(MAC, text) },
  { id: 'home-path', category: 'username', replacement: '[USER]', hint: /home|users|documents/i, find: findHome },
]
