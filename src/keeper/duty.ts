/** One office at a time: what its holder may rely on while it works. */
export interface Tenure {
  /** Aborts when the office is lost or given up. */
  readonly signal: AbortSignal
  /** Whether the office is still held; asks the store if the lease has run out by this process's clock. */
  holds(): Promise<boolean>
}

/** Something that is to be done again and again by whoever holds the office. */
export interface Duty {
  readonly name: string
  /** Does what is due now and answers in how many milliseconds it wants to look again. */
  perform(tenure: Tenure): Promise<number>
  /** Calls `wake` when it should look at once. Returns the unsubscriber. */
  onChange?(wake: () => void): () => void
}
