/** Who holds an office, and for how long. Time is measured by the store, so that nobody's clock decides. */
export interface Term {
  readonly holder: string
  /** Grows whenever the office changes hands. */
  readonly number: number
  /** How long it is still held without being renewed. */
  readonly leftMs: number
}

/**
 * An office that one process at a time holds. It saves work and decides nothing: whatever its holder does is fenced by
 * itself, because a holder that was paused believes in its office until it looks.
 */
export interface Leadership {
  /** Takes the office if it is free or run out, prolongs it if `holder` has it; answers who has it now. */
  campaign(office: string, holder: string, leaseMs: number): Promise<Term>
  /** Frees the office at once, if `holder` has it. */
  resign(office: string, holder: string): Promise<void>
  /** Null when nobody holds it. */
  leader(office: string): Promise<Term | null>
}
