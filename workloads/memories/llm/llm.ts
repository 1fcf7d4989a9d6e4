/** What consolidation asks of a language model. Adapters: `anthropicLlm`, `openAiLlm` and `localLlm`. */

export interface CompletionOptions {
  readonly maxTokens: number
  readonly temperature: number
}

/**
 * Errors decide what the queue does: `Offline` (no connection: no attempt used), `RetryAfter` (429, 503), `NonRetryable`
 * (refused credentials); any other error is an ordinary retry.
 */
export interface Llm {
  complete(
    prompt: string,
    options: CompletionOptions,
    call?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly text: string }>
}
