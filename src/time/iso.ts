/** Stored times are ISO-8601 UTC with milliseconds, so that text order is time order. */
export function toIso(ms: number): string {
  if (ms !== written.ms) written = { ms, text: new Date(ms).toISOString() }
  return written.text
}

/** Jobs of one batch share their times, so the last answer is often the next one. */
let written = { ms: Number.NaN, text: '' }

let recent = { text: '', ms: Number.NaN }

/**
 * Reads an ISO-8601 time with a date such as 2026-11-16; NaN for any other text. Date.parse knows more forms, but their
 * text order is not their time order, so a store that compares texts would not find them when they are due.
 */
export function fromIso(text: string): number {
  if (text !== recent.text) recent = { text, ms: text[4] === '-' && text[7] === '-' ? Date.parse(text) : Number.NaN }
  return recent.ms
}
