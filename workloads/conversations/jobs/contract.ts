/** The names and figures of the pipeline's three jobs. Free of dependencies, because the hook is built from it too. */

export const SANITIZE_AI_VALIDATION = 'sanitize_ai_validation'
export const EXTRACT_LEARNING = 'extract_learning'
export const MINE_UPLOAD = 'mine_upload'

export type ConversationJobType = typeof SANITIZE_AI_VALIDATION | typeof EXTRACT_LEARNING | typeof MINE_UPLOAD

export interface JobFigures {
  /** 1 is the most urgent. */
  readonly priority: number
  /** Starts in total, as the column `max_retries` counts them. */
  readonly attempts: number
  /** The idempotency key, from the id of the conversation or learning. */
  key(id: string): string
}

export const CONVERSATION_JOBS: Readonly<Record<ConversationJobType, JobFigures>> = Object.freeze({
  // Privacy comes first: nothing else happens to a message before it is validated.
  [SANITIZE_AI_VALIDATION]: { priority: 1, attempts: 3, key: (id: string) => `sanitize-ai-validation-${id}` },
  [EXTRACT_LEARNING]: { priority: 5, attempts: 3, key: (id: string) => `extract-learning-${id}` },
  [MINE_UPLOAD]: { priority: 10, attempts: 5, key: (id: string) => `upload-${id}` },
})

export const ULID_PATTERN = /^[0-9A-HJKMNP-TV-Z]{26}$/
