/** How many cells of a terminal a text takes. Most scripts take one per letter, East Asian ones and emoji two. */
const ASCII = /^[\x20-\x7e]*$/
/** As text, because V8 reads a pattern where it is written: all emoji take it as long as half of Node's own start. */
const WIDE =
  '^(?:[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\u3000-\\u303e\\uff01-\\uff60\\uffe0-\\uffe6]|\\p{RGI_Emoji})'
const HALF_WIDTH = /^[\uff61-\uffdc]/
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u

let segmenter: Intl.Segmenter | undefined
let wide: RegExp | undefined

function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return segmenter.segment(text)
}

function cellsOf(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0
  wide ??= new RegExp(WIDE, 'v')
  return wide.test(grapheme) && !HALF_WIDTH.test(grapheme) ? 2 : 1
}

export function cellWidth(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemesOf(text)) width += cellsOf(segment)
  return width
}

/** As much of the start as fits, in whole characters. */
export function cutToCells(text: string, room: number): string {
  if (ASCII.test(text)) return text.slice(0, room)
  let [cut, left] = ['', room]
  for (const { segment } of graphemesOf(text)) {
    left -= cellsOf(segment)
    if (left < 0) break
    cut += segment
  }
  return cut
}
