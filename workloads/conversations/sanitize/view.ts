/**
 * The text as the rules see it, with the way back to the places in the original. Characters that only hide a secret are
 * gone, escapes are resolved.
 */
export interface View {
  /** With Latin letters and digits for those that look like them or mean the same. */
  readonly text: string
  /** As long as `text`, with the letters that were written. */
  readonly exact: string
  /** The place in the original of the character at `index`. */
  startOf(index: number): number
  /** The place in the original behind the character before `index`. */
  endOf(index: number): number
}

/** Zero-width characters, soft hyphens, marks of direction, fillers, variation selectors, tags; accents on their own. */
const INVISIBLE = (() => {
  const ignored =
    '\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb'
  const marks =
    '\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe00-\\ufe0f\\ufe20-\\ufe2f'
  return new RegExp(
    `[${ignored}${marks}]|\\ud82f[\\udca0-\\udca3]|\\ud834[\\udd73-\\udd7a]|[\\udb40-\\udb43][\\udc00-\\udfff]`,
  )
})()
/** By code point, without the flag u and \p: those take milliseconds to parse, and the hook starts each time. */
const NOT_ASCII = /[\ud800-\udbff][\udc00-\udfff]|[\u0080-\uffff]/g
/** The digit 0 of scripts whose digits NFKC leaves alone; 1 to 9 follow it. */
const ZEROS =
  '\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u0f20\u1040\u17e0\u1810'
/** Cyrillic, Greek and other letters beside the Latin ones they look like; dashes, dots, slashes and colons of other forms. */
const LOOKS_LIKE =
  'аa ɑa АA ΑA ВB ΒB сc ϲc СC ϹC ԁd еe ЕE ΕE ɡg һh НH ΗH іi ιi ıi ІI ΙI јj ЈJ κk кk КK ΚK МM ΜM ΝN оo οo օo ОO ΟO рp ρp РP ΡP ѕs ЅS ТT ΤT υu νv ѡw хx χx ХX ΧX ' +
  'уy γy УY ΥY ΖZ ‐- ‑- ‒- –- —- ―- −- ˗- 。. ․. ⁄/ ∕/ ∶: ː:'
let latinLetters: ReadonlyMap<string, string> | undefined
/** Made with the first text that is not ASCII. */
function latinOf(character: string): string {
  latinLetters ??= new Map([
    ...LOOKS_LIKE.split(' ').map((pair) => [pair.slice(0, 1), pair.slice(1)] as const),
    ...[...ZEROS].flatMap((zero) =>
      Array.from({ length: 10 }, (_, digit) => [String.fromCharCode(zero.charCodeAt(0) + digit), `${digit}`] as const),
    ),
  ])
  return latinLetters.get(character) ?? character
}

/** One character folds to 18: a text of such would take 18 times as long, and hides nothing. */
const FOLDED_MAX = 4

const composedLetters = new Map<string, string>()

function composed(character: string): string {
  const known = composedLetters.get(character)
  if (known !== undefined) return known
  const nfkc = INVISIBLE.test(character) ? '' : character.normalize('NFKC')
  const folded = nfkc.length > FOLDED_MAX ? character : nfkc
  if (composedLetters.size < 4_096) composedLetters.set(character, folded)
  return folded
}

function latin(exact: string): string {
  return exact.replace(NOT_ASCII, latinOf)
}

export function viewOf(text: string): View {
  return folded({ text, exact: text, startOf: (index) => index, endOf: (index) => index })
}

function folded(view: View): View {
  const { exact } = view
  if (!/[\u0080-\uffff]/.test(exact)) return view
  // Most text in other scripts is as it should be, and going through it letter by letter is slow.
  const isPlain = !INVISIBLE.test(exact) && exact.normalize('NFKC') === exact
  return (isPlain ? null : rewrite(view, NOT_ASCII, composed)) ?? { ...view, text: latin(exact) }
}

/** %40, &#64; &commat; \u0040 \x40 become the character. What is encoded thrice stays hidden. */
export function decoded(view: View): View | null {
  const once = rewrite(view, ESCAPE, unescaped)
  if (once === null) return null
  const twice = rewrite(once, ESCAPE, unescaped) ?? once
  return folded(twice)
}

/** The lines as one, where a word could go on in the next line. */
export function joined(view: View): View | null {
  return rewrite(view, BREAK, () => '')
}

const ESCAPE =
  /%[0-7][\da-f]|(?:%[89a-f][\da-f]){1,16}|&#\d{1,7};?|&#x[\da-f]{1,6};?|&(?:commat|period|colon|sol|lowbar|hyphen|plus|equals|num|nbsp|shy|zwnj|zwj|amp);|\\u[\da-f]{4}|\\u\{[\da-f]{1,6}\}|\\x[\da-f]{2}|\\[nrt]/gi
const BREAK = /(?<=[\w@.+/=-])-?\r?\n[ \t>|]{0,8}(?=[\w@.+/=-])/g
const NAMED: Readonly<Record<string, string>> = {
  ...{ commat: '@', period: '.', colon: ':', sol: '/', lowbar: '_', hyphen: '-', plus: '+', equals: '=', num: '#' },
  ...{ nbsp: ' ', shy: '', zwnj: '', zwj: '', amp: '&' },
}

/** As in JSON and in source: without them a name behind \\n would start with an n. */
const BLANKS: Readonly<Record<string, string>> = { '\\n': '\n', '\\r': '\r', '\\t': '\t' }

function unescaped(written: string): string {
  if (written.startsWith('%')) {
    const bytes = Buffer.from(written.replaceAll('%', ''), 'hex')
    return bytes.length === 1 ? bytes.toString('latin1') : bytes.toString('utf8')
  }
  const blank = BLANKS[written]
  if (blank !== undefined) return blank
  const named = NAMED[written.slice(1, -1).toLowerCase()]
  if (named !== undefined) return named
  const hex = /^(?:&#x|\\u\{?|\\x)([\da-f]+)/i.exec(written)?.[1]
  const code = hex === undefined ? Number(/\d+/.exec(written)?.[0]) : Number.parseInt(hex, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : written
}

/** A replaced piece: from and to in the new text, and in the one before. */
type Piece = readonly [from: number, to: number, before: number, behind: number]

/** Null if the pattern is nowhere in the text. */
function rewrite(view: View, pattern: RegExp, replace: (match: string) => string): View | null {
  const pieces: Piece[] = []
  let exact = ''
  let kept = 0
  for (const match of view.exact.matchAll(pattern)) {
    const written = replace(match[0])
    if (written === match[0]) continue
    exact += view.exact.slice(kept, match.index)
    kept = match.index + match[0].length
    pieces.push([exact.length, exact.length + written.length, match.index, kept])
    exact += written
  }
  exact += view.exact.slice(kept)
  if (pieces.length === 0) return null
  return {
    text: latin(exact),
    exact,
    startOf: (index) => view.startOf(placeOf(pieces, index, 'start')),
    endOf: (index) => (index === 0 ? 0 : view.endOf(placeOf(pieces, index - 1, 'end'))),
  }
}

/** Where the character at `index` starts or ends in the text before the rewriting. */
function placeOf(pieces: readonly Piece[], index: number, edge: 'start' | 'end'): number {
  let low = 0
  let high = pieces.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((pieces[middle]?.[0] ?? 0) <= index) low = middle + 1
    else high = middle
  }
  // Pieces that became nothing start where the next character does: the last of them is the one before it.
  const [, to, before, behind] = pieces[low - 1] ?? [0, 0, 0, 0]
  if (index < to) return edge === 'start' ? before : behind
  return behind + (index - to) + (edge === 'start' ? 0 : 1)
}
