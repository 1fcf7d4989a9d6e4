import type { Span } from './rule.ts'

/** The shortest run that is decoded. */
export const ENCODED_MIN = 12

/** A line, or lines as long as those that encoders break at. */
const RUN =
  /[A-Za-z\d+/_-]{40,}(?:\r?\n[ \t]{0,8}[A-Za-z\d+/_-]{4,}={0,2}(?=\s|$)){1,100000}|[A-Za-z\d+/_-]{12,}={0,2}/g
const HEX = /^(?:[\da-f]{2})+$/i
/** Shorter ones stand in any bytes by chance. */
const PRINTABLE = /[\x20-\x7e\t]{7,}/g

/**
 * Runs of base64 or hex digits whose text has findings. `find` is called once, with the decoded text of all runs: a call for
 * each would cost more than the runs. Bounded: each run is decoded five times at most, as a run can start anywhere in a word.
 */
export function findEncoded<Place extends Span>(
  text: string,
  find: (decodedText: string) => readonly Place[],
): Place[] {
  const runs: { readonly run: Span; readonly until: number }[] = []
  let pool = ''
  for (const { 0: run, index } of text.matchAll(RUN)) {
    const decoded = decodings(run)
    if (decoded === '') continue
    pool += decoded
    runs.push({ run: { start: index, end: index + run.length }, until: pool.length })
  }
  if (pool === '') return []
  const places: Place[] = []
  let at = 0
  for (const place of [...find(pool)].sort((one, other) => one.start - other.start)) {
    while ((runs[at]?.until ?? Number.POSITIVE_INFINITY) <= place.start) at++
    const run = runs[at]?.run
    if (run !== undefined && places.at(-1)?.start !== run.start) places.push({ ...place, ...run })
  }
  return places
}

/** Ordinary words, names and paths: they would decode to noise, and most long runs are such. */
function isWordy(run: string): boolean {
  const others = run.match(/[^a-z]/g)?.length ?? 0
  return !/\d/.test(run) && others * 4 <= run.length
}

function decodings(run: string): string {
  const digits = run.replace(/\s/g, '')
  if (isWordy(digits)) return ''
  // Behind a / or - the encoded part can start at any of four places.
  const offsets = /[+/_-]/.test(digits) ? [0, 1, 2, 3] : [0]
  const texts = offsets.map((offset) => Buffer.from(digits.slice(offset), 'base64'))
  if (HEX.test(digits)) texts.push(Buffer.from(digits, 'hex'))
  // Every second byte of UTF-16 is 0.
  const printable = texts.flatMap((bytes) => bytes.toString('latin1').replaceAll('\0', '').match(PRINTABLE) ?? [])
  return printable.map((stretch) => `${stretch}\n`).join('')
}
