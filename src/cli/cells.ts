/** How many cells of a terminal a text takes. Most scripts take one per letter, East Asian ones and emoji two. */
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

const ASCII = /^[\x20-\x7e]*$/
const WIDE =
  /^(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\p{RGI_Emoji})/v
const HALF_WIDTH = /^[\uff61-\uffdc]/
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}]+$/u

function cellsOf(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0
  return WIDE.test(grapheme) && !HALF_WIDTH.test(grapheme) ? 2 : 1
}

export function cellWidth(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += cellsOf(segment)
  return width
}

/** As much of the start as fits, in whole characters. */
export function cutToCells(text: string, room: number): string {
  if (ASCII.test(text)) return text.slice(0, room)
  let [cut, left] = ['', room]
  for (const { segment } of segmenter.segment(text)) {
    left -= cellsOf(segment)
    if (left < 0) break
    cut += segment
  }
  return cut
}
