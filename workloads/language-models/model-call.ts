/** One question to a model: what it is given, what it returns, and how it fails. */

export interface ModelCall {
  /** Aborts at the job's timeout, when its lease is lost and when the worker stops. */
  readonly signal: AbortSignal
  /** Reaches only the configured endpoints. */
  readonly fetch: typeof fetch
}

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** An answer that is whole. */
export interface ChatReply {
  readonly text: string
  readonly usage: Usage
}

/**
 * An answer that cannot be used, or a server that failed: an ordinary retry. Its message says what to do and quotes nothing
 * of a message, so it may be stored.
 */
export class ModelFailure extends Error {
  readonly code = 'ERR_MODEL'
  override readonly name = 'ModelFailure'
}
