/** Stored times are ISO-8601 UTC with milliseconds, so that text order is time order. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Jobs of one batch share their times, so the last answer is often the next one. */
let recent = { text: '', ms: Number.NaN }

/** Reads any ISO-8601 time; NaN for text that is none. */
export function fromIso(text: string): number {
  if (text !== recent.text) recent = { text, ms: Date.parse(text) }
  return recent.ms
}
