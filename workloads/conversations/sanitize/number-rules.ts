/** Numbers with a check digit, and US social security numbers. */
import { type Rule, type Span, spansOf } from './rule.ts'

/** Groups as on cards: 4-4-4-4(-3), 4-6-5, 4-6-4, or without blanks. Rows of other numbers are not cards. */
const CARD =
  /(?<![\w.-])(?:\d{4}([ .-])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ .-])\d{6}\2\d{4,5}|\d{12,19})(?![\w]|[.-]\d)/g
/** The issuers' first digits and lengths: without them a tenth of all long ids would pass. */
const ISSUED =
  /^(?:4\d{12}(?:\d{3}){0,2}|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12,15}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15})$/

function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

function isCard(match: RegExpExecArray): boolean {
  const digits = match[0].replace(/\D/g, '')
  return ISSUED.test(digits) && passesLuhn(digits)
}

/** Length by country, of the IBAN registry. */
const IBAN_LENGTHS =
  'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 ' +
  'FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 ' +
  'LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 ' +
  'SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
const IBAN_START = /(?<![A-Za-z\d])[A-Za-z]{2}\d\d(?=[ -]?[A-Za-z\d])/g

function remainder97(iban: string): number {
  let remainder = 0
  for (const letter of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(letter, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder
}

/** Where the IBAN that starts at `start` ends. Null if none does. */
function ibanEnd(text: string, start: number): number | null {
  const country = IBAN_LENGTHS.indexOf(text.slice(start, start + 2).toUpperCase())
  if (country === -1) return null
  const length = Number(IBAN_LENGTHS.slice(country + 2, country + 4))
  let iban = ''
  let at = start
  for (; iban.length < length; at++) {
    if (isAlphanumeric(text, at)) iban += text[at]
    else if ((text[at] !== ' ' && text[at] !== '-') || !isAlphanumeric(text, at + 1)) return null
  }
  return isAlphanumeric(text, at) || remainder97(iban) !== 1 ? null : at
}

function isAlphanumeric(text: string, at: number): boolean {
  const code = text.charCodeAt(at) | 0x20
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57 && text.charCodeAt(at) >= 48)
}

function findIban(text: string): Span[] {
  return spansOf(IBAN_START, text).flatMap(({ start }) => {
    const end = ibanEnd(text, start)
    return end === null ? [] : [{ start, end }]
  })
}

const SSN = /(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])/g
const SSN_AFTER_WORD =
  /(?<=\b(?:ssn|social security(?: (?:number|no\.?))?)\W{0,3}(?:is )?)\d{3}[ .-]?\d\d[ .-]?\d{4}(?!\w)/gi

const DIGITS_HINT = /\d\d/

export const NUMBER_RULES: readonly Rule[] = [
  {
    id: 'card',
    category: 'card',
    replacement: '[CARD]',
    hint: DIGITS_HINT,
    find: (text) => spansOf(CARD, text, isCard),
  },
  { id: 'iban', category: 'iban', replacement: '[IBAN]', hint: DIGITS_HINT, find: findIban },
  {
    id: 'ssn',
    category: 'ssn',
    replacement: '[SSN]',
    hint: DIGITS_HINT,
    find: (text) => [...spansOf(SSN, text), ...spansOf(SSN_AFTER_WORD, text)],
  },
]
