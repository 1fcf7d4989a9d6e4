export type JsonRead = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string }

/** Parses typed JSON, and says where it is invalid. */
export function readJson(text: string): JsonRead {
  if (text.trim() === '') return { ok: false, why: 'it is empty; write null for nothing' }
  try {
    const value: unknown = JSON.parse(text)
    return { ok: true, value }
  } catch (error) {
    return { ok: false, why: located(text, error instanceof Error ? error.message : String(error)) }
  }
}

/** Parsers count characters, people count lines. */
function located(text: string, message: string): string {
  const position = /at position (\d+)/.exec(message)?.[1]
  const short = message.replace(/ in JSON at position.*$/s, '').replace(/^JSON\.parse: /, '')
  if (position === undefined) return short
  const before = text.slice(0, Number(position)).split('\n')
  return `${short} (line ${before.length}, sign ${(before.at(-1)?.length ?? 0) + 1})`
}
