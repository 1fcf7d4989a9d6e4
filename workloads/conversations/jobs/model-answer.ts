/** A call of the model: its answer is checked against a schema, and its errors lose what could quote a message. */
import { z } from 'zod'
import { fieldOf, isError, isMillraceError } from '../../../src/errors.ts'
import type { ModelAnswer } from '../models/model.ts'

const SNIPPET_LENGTH_MAX = 4_000

export const findingsAnswer = z.array(
  z.object({
    message_id: z.string(),
    snippet: z.string().max(SNIPPET_LENGTH_MAX).regex(/\S/),
    category: z.string(),
    confidence: z.number().min(0).max(1),
  }),
)

export const learningsAnswer = z.array(
  z.object({
    category: z.string().regex(/\S/),
    title: z.string().regex(/\S/),
    content: z.string().regex(/\S/),
    confidence: z.number().min(0).max(1),
    tags: z.array(z.string()),
    source_message_ids: z.array(z.string()),
  }),
)

/**
 * Calls the model and returns its items. An answer that does not match the schema is an ordinary error: the job is retried.
 */
export async function answerOf<Schema extends z.ZodType>(
  model: string,
  schema: Schema,
  call: () => Promise<ModelAnswer<unknown>>,
): Promise<ModelAnswer<z.infer<Schema>>> {
  const answer = await call().catch((error: unknown) => {
    throw withoutContent(model, error)
  })
  const parsed = schema.safeParse(answer.items)
  if (parsed.success) return { items: parsed.data, usage: answer.usage }
  const [issue] = parsed.error.issues
  // Only the place: a value could be a piece of a message.
  throw new Error(
    `the answer of the model '${model}' does not match its schema (${issue?.code} at ${issue?.path.join('.')}); it is asked again`,
  )
}

/** Errors of the queue and our adapters' ModelFailure decide what happens next and quote nothing. Any other message may quote what the model was given. */
function withoutContent(model: string, error: unknown): unknown {
  const isOurs = isMillraceError(error) || fieldOf(error, 'code') === 'ERR_MODEL'
  if (isOurs || fieldOf(error, 'name') === 'AbortError') return error
  const kind = isError(error) ? error.name : typeof error
  const [code, status] = [fieldOf(error, 'code'), fieldOf(error, 'status')]
  const details = [code, status].filter((detail) => typeof detail === 'string' || typeof detail === 'number')
  const failure = new Error(`the model '${model}' failed with ${[kind, ...details].join(' ')}`)
  // By its status the queue decides whether a retry can help.
  return typeof status === 'number' ? Object.assign(failure, { status }) : failure
}
