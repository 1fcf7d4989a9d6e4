/** The ledger of requirements: its rows, who cites them, and its text with that written in. Pure, so that a test can hold it. */

const ROW = /^\| ([A-E]\d{2,3}|X\d{3}) \|/
const CITED = /\b([A-E]\d{2,3}|X\d{3})(?:\.\.([A-E]\d{2,3}|X\d{3}))?\b/g
const COMMENT = /(?<![:'"`\w])\/\/[^\n]*|\/\*[\s\S]*?\*\//g

/** The ids of the ledger, in its order. */
export function rowIds(ledger: string): readonly string[] {
  return ledger.split('\n').flatMap((line) => ROW.exec(line)?.[1] ?? [])
}

/** The ids that comments of a file cite: single ones, and ranges written `B18..B36`. Ids in code and strings do not count. */
export function citedIds(source: string): ReadonlySet<string> {
  const cited = new Set<string>()
  for (const [comment] of source.matchAll(COMMENT)) {
    for (const [, first = '', last] of comment.matchAll(CITED)) {
      for (const id of last === undefined ? [first] : rangeOf(first, last)) cited.add(id)
    }
  }
  return cited
}

/** Ids keep their width: B08..B11 is B08, B09, B10, B11, and B99..B101 goes on as B100. */
function rangeOf(first: string, last: string): readonly string[] {
  const letter = first.charAt(0)
  const [from, to] = [Number(first.slice(1)), Number(last.slice(1))]
  if (last.charAt(0) !== letter || to < from) {
    throw new Error(`'${first}..${last}' is not a range; write the smaller id first and both with the same letter`)
  }
  return Array.from(
    { length: to - from + 1 },
    (_, index) => letter + String(from + index).padStart(letter === 'X' ? 3 : 2, '0'),
  )
}

export type Citations = ReadonlyMap<string, readonly string[]>

/** Which files cite each row. Throws for an id that no row has: a typing error would leave the meant row uncited. */
export function collect(ids: readonly string[], sources: ReadonlyMap<string, string>): Citations {
  const citations = new Map<string, string[]>(ids.map((id) => [id, []]))
  for (const [file, source] of sources) {
    for (const id of citedIds(source)) {
      const files = citations.get(id)
      if (files === undefined) throw new Error(`${file} cites ${id}, which is not in test/requirements.md`)
      files.push(file)
    }
  }
  return citations
}

const FILES_SHOWN_MAX = 3

/** The ledger with its last column written anew; nothing else changes. */
export function withCitations(ledger: string, citations: Citations): string {
  return ledger
    .split('\n')
    .map((line) => {
      const id = ROW.exec(line)?.[1]
      if (id === undefined) return line
      const files = citations.get(id) ?? []
      const shown = files.slice(0, FILES_SHOWN_MAX).join(', ')
      const more = files.length > FILES_SHOWN_MAX ? `, +${files.length - FILES_SHOWN_MAX}` : ''
      return `${line.slice(0, line.lastIndexOf(' | ', line.length - 2))} | ${shown}${more} |`
    })
    .join('\n')
}

/** One line per document, then the rows that nothing cites, neighbours as ranges. */
export function summary(citations: Citations): readonly string[] {
  const letters = [...new Set([...citations.keys()].map((id) => id.charAt(0)))]
  return letters.flatMap((letter) => {
    const rows = [...citations].filter(([id]) => id.startsWith(letter))
    const uncited = rows.filter(([, files]) => files.length === 0).map(([id]) => id)
    const line = `${letter}: ${rows.length - uncited.length} of ${rows.length} rows cited`
    return uncited.length === 0 ? [line] : [line, `   not cited: ${inRanges(uncited).join(' ')}`]
  })
}

function inRanges(ids: readonly string[]): readonly string[] {
  const ranges: { first: string; last: string }[] = []
  for (const id of ids) {
    const range = ranges.at(-1)
    if (range !== undefined && Number(id.slice(1)) === Number(range.last.slice(1)) + 1) range.last = id
    else ranges.push({ first: id, last: id })
  }
  return ranges.map(({ first, last }) => (first === last ? first : `${first}..${last}`))
}
