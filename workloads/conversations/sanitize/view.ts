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
const INVISIBLE: readonly (readonly [from: number, to: number])[] = [
  ...([
    [0xad, 0xad],
    [0x300, 0x36f],
    [0x483, 0x489],
    [0x61c, 0x61c],
    [0x115f, 0x1160],
    [0x17b4, 0x17b5],
  ] as const),
  ...([
    [0x180b, 0x180f],
    [0x1ab0, 0x1aff],
    [0x1dc0, 0x1dff],
    [0x200b, 0x200f],
    [0x202a, 0x202e],
    [0x2060, 0x206f],
  ] as const),
  ...([
    [0x20d0, 0x20ff],
    [0x3164, 0x3164],
    [0xfe00, 0xfe0f],
    [0xfe20, 0xfe2f],
    [0xfeff, 0xfeff],
    [0xffa0, 0xffa0],
  ] as const),
  ...([
    [0xfff0, 0xfffb],
    [0x1bca0, 0x1bca3],
    [0x1d173, 0x1d17a],
    [0xe0000, 0xe0fff],
  ] as const),
]
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

function composed(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return INVISIBLE.some(([from, to]) => code >= from && code <= to) ? '' : character.normalize('NFKC')
}

function latin(exact: string): string {
  return exact.replace(NOT_ASCII, latinOf)
}

export function viewOf(text: string): View {
  const whole: View = { text, exact: text, startOf: (index) => index, endOf: (index) => index }
  return rewrite(whole, NOT_ASCII, composed) ?? whole
}

/** %40, &#64; &commat; \u0040 \x40 become the character. What is encoded thrice stays hidden. */
export function decoded(view: View): View | null {
  const once = rewrite(view, ESCAPE, unescaped)
  if (once === null) return null
  const twice = rewrite(once, ESCAPE, unescaped) ?? once
  return rewrite(twice, NOT_ASCII, composed) ?? twice
}

/** The lines as one, where a word could go on in the next line. */
export function joined(view: View): View | null {
  return rewrite(view, BREAK, () => '')
}

const ESCAPE =
  /%[0-7][\da-f]|(?:%[89a-f][\da-f]){1,16}|&#\d{1,7};?|&#x[\da-f]{1,6};?|&(?:commat|period|colon|sol|lowbar|hyphen|plus|equals|num|nbsp|shy|zwnj|zwj|amp);|\\u[\da-f]{4}|\\u\{[\da-f]{1,6}\}|\\x[\da-f]{2}/gi
const BREAK = /(?<=[\w@.+/=-])-?\r?\n[ \t>|]{0,8}(?=[\w@.+/=-])/g
const NAMED: Readonly<Record<string, string>> = {
  ...{ commat: '@', period: '.', colon: ':', sol: '/', lowbar: '_', hyphen: '-', plus: '+', equals: '=', num: '#' },
  ...{ nbsp: ' ', shy: '', zwnj: '', zwj: '', amp: '&' },
}

function unescaped(written: string): string {
  if (written.startsWith('%')) {
    const bytes = Buffer.from(written.replaceAll('%', ''), 'hex')
    return bytes.length === 1 ? bytes.toString('latin1') : bytes.toString('utf8')
  }
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
  // Letters that no pattern changed can still look like Latin ones.
  if (pieces.length === 0)
    return pattern === NOT_ASCII && latin(exact) !== view.text ? { ...view, text: latin(exact) } : null
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
