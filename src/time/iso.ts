/** Stored times are ISO-8601 UTC with milliseconds, so that text order is time order. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

export function fromIso(text: string): number {
  return Date.parse(text)
}
