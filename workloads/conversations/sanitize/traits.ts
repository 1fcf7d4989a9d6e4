import { TOLD_WORDS } from './told-rule.ts'

/**
 * What a text has at all, found in one pass of plain code. A rule that needs what is not there is not tried: the first use of a
 * regular expression costs more than this pass, and the hook starts anew for every prompt.
 */
export interface Traits {
  readonly digits: number
  readonly dots: number
  readonly colons: number
  /** The longest run of digits of base64 and hex. */
  readonly run: number
  readonly text: string
  /** In small letters, to look for words. */
  readonly lower: string
}

export function traitsOf(text: string): Traits {
  let [digits, dots, colons, run, longest] = [0, 0, 0, 0, 0]
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    const isDigit = code >= 48 && code <= 57
    if (isDigit) digits += 1
    else if (code === 46) dots += 1
    else if (code === 58) colons += 1
    const small = code | 0x20
    const isInRun = isDigit || (small >= 97 && small <= 122) || code === 43 || code === 47 || code === 45 || code === 95
    run = isInRun ? run + 1 : 0
    if (run > longest) longest = run
  }
  return { digits, dots, colons, run: longest, text, lower: text.toLowerCase() }
}

const has =
  (...words: readonly string[]) =>
  ({ lower }: Traits): boolean =>
    words.some((word) => lower.includes(word))
/** In letters of this size. */
const starts =
  (...prefixes: readonly string[]) =>
  ({ text }: Traits): boolean =>
    prefixes.some((prefix) => text.includes(prefix))
const runs =
  (length: number) =>
  ({ run }: Traits): boolean =>
    run >= length

const namesSecret = has(
  'pass',
  'pwd',
  'pw',
  'secret',
  'key',
  'token',
  'credential',
  'auth',
  'kennwort',
  'contrase',
  'mot',
  'п',
  'パスワード',
  '密码',
  '密碼',
)

/** `sig` and `signature`, but not the word `sign`. */
function namesSignature({ lower }: Traits): boolean {
  for (let at = lower.indexOf('sig'); at !== -1; at = lower.indexOf('sig', at + 1)) {
    const next = lower.charCodeAt(at + 3)
    if (!(next >= 97 && next <= 122) || lower.startsWith('signature', at)) return true
  }
  return false
}

/** `(at)`, `[ at ]`, or `at` and `dot` somewhere. */
function spellsAt({ text, lower }: Traits): boolean {
  if (text.includes('@') || lower.includes('dot')) return true
  for (let at = lower.indexOf('at'); at !== -1; at = lower.indexOf('at', at + 1)) {
    const next = lower.charAt(at + 2).trim() === '' ? lower.charAt(at + 3) : lower.charAt(at + 2)
    if (next === ')' || next === ']' || next === '}' || next === '>') return true
  }
  return false
}

/** By the id of a built-in rule: without it the rule finds nothing. The rules that are not here are quick themselves. */
export const NEEDS: Readonly<Record<string, (traits: Traits) => boolean>> = {
  'private-key': has('private key', 'putty-user-key-file'),
  'aws-access-key': runs(20),
  github: runs(34),
  gitlab: starts('glpat-', 'gldt-', 'glrt-', 'glcbt-', 'glptt-', 'glft-', 'glsoat-', 'glagent-', 'glimt-'),
  slack: starts('xox', 'xapp-'),
  'slack-webhook': starts('hooks.slack.com'),
  stripe: starts('_live_', '_test_', 'whsec_'),
  anthropic: starts('sk-ant-'),
  openai: (traits) => traits.run >= 20 && traits.text.includes('sk-'),
  google: runs(20),
  npm: runs(40),
  pypi: starts('pypi-AgE'),
  telegram: runs(35),
  sendgrid: starts('SG.'),
  twilio: runs(34),
  'hugging-face': runs(33),
  digitalocean: runs(32),
  shopify: runs(32),
  vault: starts('hvs.', 'hvb.', 'hvr.'),
  'service-token': (traits) => traits.run >= 25 || starts('sntry', 'ATATT3')(traits),
  jwt: starts('eyJ'),
  'aws-secret-key': runs(40),
  'evm-private-key': runs(64),
  authorization: has('authorization', 'bearer', 'x-api-key'),
  'user-flag': has('-u'),
  assignment: (traits) => namesSecret(traits) || namesSignature(traits),
  told: (traits) => namesSecret(traits) || has(...TOLD_WORDS)(traits),
  card: ({ digits }) => digits >= 12,
  iban: ({ digits }) => digits >= 2,
  ssn: ({ digits }) => digits >= 9,
  'mail-spelled': spellsAt,
  phone: ({ digits }) => digits >= 7,
  ipv4: ({ digits, dots }) => digits >= 4 && dots >= 3,
  ipv6: ({ colons }) => colons >= 2,
  mac: ({ run, colons }) => run >= 17 || colons >= 5,
  'home-path': has('home', 'users', 'documents and settings'),
}

/** Whether something may be written as an escape. */
export function hasEscapes(text: string): boolean {
  return text.includes('%') || text.includes('&') || text.includes('\\')
}
