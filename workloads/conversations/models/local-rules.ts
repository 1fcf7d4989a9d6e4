/** Personal data that shows by the words around it. The rules of the hook know forms; these know contexts. */
import type { ModelFinding } from './model.ts'

interface ContextRule {
  readonly category: string
  readonly confidence: number
  /** The first group is the snippet. Every repetition is bounded, so the time is linear in the length of the text. */
  readonly pattern: RegExp
}

const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}'
const DATE = String.raw`(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}(?:st|nd|rd|th|\.)?\s(?:of\s)?${MONTH},?\s\d{4}|${MONTH}\s\d{1,2}(?:st|nd|rd|th)?,?\s\d{4})`
const IS = String.raw`(?:\s(?:is|was)|\s?[:=])\s{0,3}`
const STREET = 'Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Boulevard|Blvd|Court|Square|Terrace|Crescent'

const RULES: readonly ContextRule[] = [
  {
    category: 'birth_date',
    confidence: 0.85,
    pattern: new RegExp(
      String.raw`\b(?:born(?:\son)?|date of birth|dob|birthday)(?:\sis|\swas|\son)?[:\s]{1,3}(?:the\s)?(${DATE})`,
      'gi',
    ),
  },
  {
    category: 'address',
    confidence: 0.8,
    pattern: new RegExp(String.raw`\b(\d{1,5}[a-z]?\s(?:[A-Z][a-z]{1,20}\s){1,3}(?:${STREET}))\b`, 'g'),
  },
  {
    category: 'address',
    confidence: 0.8,
    pattern: /(?<!\p{L})(\p{Lu}\p{L}{2,25}(?:straße|strasse|gasse|allee|platz|weg)\s\d{1,4}[a-z]?)(?![\p{L}\d])/gu,
  },
  {
    category: 'id_number',
    confidence: 0.8,
    pattern:
      /\b(?:ssn|social security|passport|national insurance|driver'?s licen[cs]e|tax id|employee id|patient id)(?:\s(?:number|no\.?|is|was|#)|:){0,3}\s{1,2}((?=[A-Z-]{0,10}\d)[A-Z\d-]{6,20})\b/gi,
  },
  // Pass-phrases with blanks, which have no form of their own, and passwords with a digit or sign in them.
  {
    category: 'secret',
    confidence: 0.85,
    pattern: new RegExp(
      String.raw`\b(?:password|passphrase|passwort)${IS}["'“\x60]([^"'”\x60\n]{4,100})["'”\x60]`,
      'gi',
    ),
  },
  {
    category: 'secret',
    confidence: 0.7,
    pattern: new RegExp(
      String.raw`\b(?:password|passphrase|passwort|pwd)${IS}(?=[^\s"']{0,40}[\d!@#$%^&*])([^\s"'\x60,;()]{5,60}[^\s"'\x60,;().!?])`,
      'gi',
    ),
  },
  {
    category: 'username',
    confidence: 0.6,
    pattern: new RegExp(
      String.raw`\b(?:user\s?name|login|handle)${IS}["'\x60]?(?=[\w.-]{0,40}[\d_.-]\w)([\w.-]{3,40}\w)`,
      'gi',
    ),
  },
]

type Found = Omit<ModelFinding, 'message_id'>

export function findByContext(text: string): readonly Found[] {
  return RULES.flatMap(({ pattern, category, confidence }) =>
    [...text.matchAll(pattern)].map(([, snippet = '']) => ({ snippet, category, confidence })),
  )
}
