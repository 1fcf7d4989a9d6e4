/** What the pipeline asks of a model. Adapters: `anthropicModel`, `openAiModel` and `localModel`. */
import type { ModelCall, Usage } from '../../language-models/model-call.ts'

/** What a learning is about. A model's other categories become 'other'. */
export const LEARNING_CATEGORIES = ['fix', 'cause', 'decision', 'preference', 'practice', 'fact', 'other'] as const

/** The categories of findings by a model. Others become 'other'. */
export const PERSONAL_DATA_CATEGORIES = [
  ...['name', 'username', 'email', 'phone', 'address', 'birth_date', 'id_number', 'account', 'secret', 'other'],
] as const

export interface ModelMessage {
  readonly id: string
  readonly role: string
  /** Sanitised text. */
  readonly content: string
}

/** Personal data that the rules missed. The snippet is a piece of the message, exactly as it stands there. */
export interface ModelFinding {
  readonly message_id: string
  readonly snippet: string
  readonly category: string
  readonly confidence: number
}

export interface ModelLearning {
  readonly category: string
  readonly title: string
  readonly content: string
  readonly confidence: number
  readonly tags: readonly string[]
  readonly source_message_ids: readonly string[]
}

export interface ModelAnswer<Items> {
  readonly items: Items
  readonly usage: Usage
}

/**
 * Errors decide what the queue does: `Offline` (no connection: no attempt used), `RetryAfter` (429, 503 with Retry-After),
 * `NonRetryable` (refused credentials), any other error (an answer that does not match its schema) is an ordinary retry.
 */
export interface Model {
  readonly name: string
  /** The endpoint it calls, or null for a model without a network. */
  readonly endpoint: string | null
  findPersonalData(messages: readonly ModelMessage[], call: ModelCall): Promise<ModelAnswer<readonly ModelFinding[]>>
  findLearnings(
    messages: readonly ModelMessage[],
    wanted: { readonly categories: readonly string[]; readonly minConfidence: number },
    call: ModelCall,
  ): Promise<ModelAnswer<readonly ModelLearning[]>>
}
