/** Every word as a phrase of its own, so that no text of a user is syntax of FTS5. */
export function phrasesOf(query: string): readonly string[] {
  return query
    .replaceAll('\0', ' ')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word))
    .map((word) => `"${word.replaceAll('"', '""')}"${word.endsWith('*') ? '*' : ''}`)
}
