/** Reads what a language model answered. Whatever does not fit is an ordinary error, and no error quotes a message. */
import { z } from 'zod'
import { ModelFailure } from '../../language-models/model-call.ts'
import { withoutThinking } from '../../language-models/prompt-data.ts'
import { type ModelFinding, type ModelLearning, type ModelMessage, PERSONAL_DATA_CATEGORIES } from './model.ts'

const ITEMS_MAX = 1_000
const SNIPPET_CHARS_MAX = 2_000
const CONTENT_CHARS_MAX = 4_000
const TITLE_CHARS_MAX = 200
const TAGS_MAX = 10
const TAG_CHARS_MAX = 40

const confidence = z.number().min(0).max(1)

const findingsSchema = z.object({
  findings: z
    .array(
      z.object({
        message_id: z.string().max(200),
        // A single letter would be replaced all over the message.
        snippet: z
          .string()
          .max(SNIPPET_CHARS_MAX)
          .refine((text) => text.trim().length > 1),
        category: z.string().max(200),
        confidence,
      }),
    )
    .max(ITEMS_MAX),
})

const learningsSchema = z.object({
  learnings: z
    .array(
      z.object({
        category: z.string().max(200),
        title: z.string().trim().min(1).max(TITLE_CHARS_MAX),
        content: z.string().trim().min(1).max(CONTENT_CHARS_MAX),
        confidence,
        // Too many or too long tags are no reason to ask again.
        tags: z.array(z.string()).transform((tags) => readTags(tags)),
        source_message_ids: z.array(z.string()).min(1).max(ITEMS_MAX),
      }),
    )
    .max(ITEMS_MAX),
})

function readTags(tags: readonly string[]): readonly string[] {
  const read = tags.map((tag) => tag.trim().toLowerCase()).filter((tag) => tag !== '' && tag.length <= TAG_CHARS_MAX)
  return [...new Set(read)].slice(0, TAGS_MAX)
}

/** Placeholders of the rules are what personal data was replaced with. */
const PLACEHOLDER = /^\[[A-Z][A-Z0-9_ -]*\]$/

/** `messages` are whole, also where a call saw only a piece of one. */
export function readFindings(text: string, messages: ReadonlyMap<string, ModelMessage>): readonly ModelFinding[] {
  const { findings } = readAnswer(text, findingsSchema)
  return findings.flatMap((finding) => {
    const message = messages.get(finding.message_id)
    if (message === undefined) throw nonsense('names a message that was not asked about')
    if (!message.content.includes(finding.snippet)) throw nonsense('has a snippet that does not stand in its message')
    if (PLACEHOLDER.test(finding.snippet.trim())) return []
    return [{ ...finding, category: categoryOf(finding.category, PERSONAL_DATA_CATEGORIES) }]
  })
}

export function readLearnings(
  text: string,
  messages: ReadonlyMap<string, ModelMessage>,
  categories: readonly string[],
): readonly ModelLearning[] {
  const { learnings } = readAnswer(text, learningsSchema)
  return learnings.map((learning) => {
    if (!learning.source_message_ids.every((id) => messages.has(id))) {
      throw nonsense('names a message that was not asked about')
    }
    return { ...learning, category: categoryOf(learning.category, categories) }
  })
}

function categoryOf(given: string, known: readonly string[]): string {
  const plain = given.trim().toLowerCase()
  return known.find((one) => one.toLowerCase() === plain) ?? 'other'
}

function nonsense(why: string): ModelFailure {
  return new ModelFailure(`the model's answer ${why}; if this happens often, configure a more capable model`)
}

/**
 * The one JSON object of this form: alone, in a fence, or in prose. Two of them are refused, because one could be quoted from
 * a message.
 */
function readAnswer<Answer>(text: string, schema: z.ZodType<Answer>): Answer {
  const spoken = withoutThinking(text).trim()
  const whole = parsed(spoken)
  const candidates = whole === undefined ? objectsIn(spoken).map(parsed) : [whole]
  const fitting = candidates.flatMap((candidate) => {
    const { success, data } = schema.safeParse(candidate)
    return success ? [data] : []
  })
  const [answer] = fitting
  if (answer !== undefined && fitting.length === 1) return answer
  if (fitting.length > 1) throw nonsense('holds more than one JSON object of the form that was asked for')
  throw nonsense(candidates.length === 0 ? 'holds no JSON object' : 'does not have the form that was asked for')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The outermost balanced `{…}` of a text, in one pass. Braces inside strings do not count. */
function objectsIn(text: string): readonly string[] {
  const found: string[] = []
  let depth = 0
  let start = 0
  let inString = false
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    if (inString) {
      if (char === '\\') at += 1
      else if (char === '"') inString = false
    } else if (char === '"' && depth > 0) inString = true
    else if (char === '{') {
      if (depth === 0) start = at
      depth += 1
    } else if (char === '}' && depth > 0) {
      depth -= 1
      if (depth === 0) found.push(text.slice(start, at + 1))
    }
  }
  return found
}
