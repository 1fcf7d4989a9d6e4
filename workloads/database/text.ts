/**
 * Text that both databases keep as it is. Postgres stores no NUL, and neither database a half of a surrogate pair: two texts
 * that differ in such a half only would become the same.
 */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

/** With a blank for NUL and a replacement character for a half of a surrogate pair. */
export function storableText(text: string): string {
  return text.replaceAll('\0', ' ').toWellFormed()
}

/** The same as JSON, for a column of JSON. */
export function storableJson(value: unknown): string {
  // Every escape is one match, so the text \u0000, which is written with two backslashes, stays what it is.
  return JSON.stringify(value).replaceAll(/\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (escaped) => {
    if (escaped === '\\u0000') return ' '
    return escaped.startsWith('\\ud') ? '\uFFFD' : escaped
  })
}

/** For `Dialect.texts`: a list of texts to look for. Those that cannot be stored are in no row, and Postgres would refuse them. */
export function textList(texts: readonly string[]): string {
  return JSON.stringify(texts.filter(isStorable))
}
