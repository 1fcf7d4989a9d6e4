/**
 * The text as rules see it: without what only hides a secret, and with a way back to the places in the text. Letters and
 * digits of other forms and scripts become Latin ones, characters without width go.
 */
export interface View {
  readonly text: string
  /** The place in the original of the character at `index`. */
  startOf(index: number): number
  /** The place in the original behind the character before `index`. */
  endOf(index: number): number
}

/** Zero-width characters, soft hyphens, marks of direction, fillers, variation selectors, tag characters; accents on their own. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{M}]/u
const NOT_ASCII = /\P{ASCII}/u
/** The digit 0 of scripts whose digits NFKC leaves alone; 1 to 9 follow it. */
const ZEROS = [
  0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20, 0x1040,
  0x17e0, 0x1810,
]
/** Cyrillic and Greek letters that look like Latin ones, and dashes and dots of other forms. */
const ALIKE = new Map(
  Object.entries({
    аàɑ: 'a',
    АΑ: 'A',
    ВΒ: 'B',
    сϲ: 'c',
    СϹ: 'C',
    ԁ: 'd',
    е: 'e',
    ЕΕ: 'E',
    һ: 'h',
    НΗ: 'H',
    іι: 'i',
    ІΙ: 'I',
    ј: 'j',
    Ј: 'J',
    κк: 'k',
    КΚ: 'K',
    ⅼ: 'l',
    МΜ: 'M',
    Ν: 'N',
    оοօ: 'o',
    ОΟ: 'O',
    рρ: 'p',
    РΡ: 'P',
    ѕ: 's',
    Ѕ: 'S',
    ТΤ: 'T',
    υ: 'u',
    ν: 'v',
    ѡ: 'w',
    хχ: 'x',
    ХΧ: 'X',
    уγ: 'y',
    УΥ: 'Y',
    Ζ: 'Z',
    '‐‑‒–—―−﹘': '-',
    '。․': '.',
    '⁄∕': '/',
    '˗': '-',
    '∶ː': ':',
    '＿': '_',
  }).flatMap(([letters, latin]) => [...letters].map((letter) => [letter, latin] as const)),
)

function folded(character: string): string {
  const plain = character.normalize('NFKC')
  const alike = ALIKE.get(plain)
  if (alike !== undefined) return alike
  const code = plain.codePointAt(0) ?? 0
  const zero = plain.length === 1 ? ZEROS.find((first) => code >= first && code < first + 10) : undefined
  return zero === undefined ? plain : String(code - zero)
}

export function plainView(text: string): View {
  if (!NOT_ASCII.test(text)) return { text, startOf: (index) => index, endOf: (index) => index }
  const starts: number[] = []
  const ends: number[] = []
  let shown = ''
  let at = 0
  for (const character of text) {
    const end = at + character.length
    const code = character.charCodeAt(0)
    const visible = code < 0x80 ? character : INVISIBLE.test(character) ? '' : folded(character)
    for (let index = 0; index < visible.length; index++) {
      starts.push(at)
      ends.push(end)
    }
    shown += visible
    at = end
  }
  return {
    text: shown,
    startOf: (index) => starts[index] ?? text.length,
    endOf: (index) => (index === 0 ? 0 : (ends[index - 1] ?? text.length)),
  }
}
