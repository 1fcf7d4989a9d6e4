/** What a language model is asked. The messages are data: nothing in them can end the place where they stand. */
import { boundaryFor, dataOnly } from '../../language-models/prompt-data.ts'
import { LEARNING_CATEGORIES, type ModelMessage, PERSONAL_DATA_CATEGORIES } from './model.ts'

export interface Prompt {
  readonly system: string
  readonly user: string
  readonly answer: AnswerForm
}

/** For servers that can hold a model to a JSON schema. The answer is validated here in any case. */
export interface AnswerForm {
  readonly name: string
  readonly schema: Readonly<Record<string, unknown>>
}

const list = (values: readonly string[]): string => values.map((value) => JSON.stringify(value)).join(', ')

export function personalDataPrompt(messages: readonly ModelMessage[]): Prompt {
  const boundary = boundaryFor(messages.map(({ content }) => content))
  const system = `You look for personal data and secrets in messages from a programmer's conversations. Rules have already replaced what they know with placeholders in square brackets, such as [EMAIL].

${dataRule(boundary)}

Report what the rules missed: names of people (also inside identifiers, such as john_smith in john_smith_password or JaneDoe in emailJaneDoe, and in file or branch names), user names, postal addresses, dates of birth, numbers of documents and accounts, phone numbers, mail addresses written in another way, passwords, keys and tokens.
Do not report placeholders, names of products, tools, libraries, companies and places, or stock names of examples (Alice and Bob in a protocol).

Answer with one JSON object and nothing else:
{"findings":[{"message_id":"the id of the message","snippet":"the shortest piece that holds the personal data, copied exactly as it stands in the message","category":"one of ${PERSONAL_DATA_CATEGORIES.join(', ')}","confidence":0.9}]}
"confidence" is a number from 0 to 1. If there is nothing to report, answer {"findings":[]}.`
  return { system, user: delimited(messages, boundary), answer: FINDINGS_FORM }
}

export interface WantedLearnings {
  readonly categories: readonly string[]
  readonly minConfidence: number
}

/** The categories that an answer may use: those that are asked for, or all of ours. */
export function learningCategories({ categories }: WantedLearnings): readonly string[] {
  return categories.length === 0 ? LEARNING_CATEGORIES : categories
}

export function learningsPrompt(messages: readonly ModelMessage[], wanted: WantedLearnings): Prompt {
  const boundary = boundaryFor(messages.map(({ content }) => content))
  const system = `You extract lasting learnings from messages of a programmer's conversation: what would help somebody with the same problem in a year. Rules have replaced personal data with placeholders in square brackets.

${dataRule(boundary)}

A learning stands on its own, is stated in the messages and not made up, and names no person. Leave out small talk, open questions and what matters only today.

Answer with one JSON object and nothing else:
{"learnings":[{"category":"one of the list","title":"at most 80 characters","content":"one to four sentences","confidence":0.9,"tags":["at most five","lower-case"],"source_message_ids":["ids of the messages that state it"]}]}
Categories: ${list(learningCategories(wanted))}. "confidence" is a number from 0 to 1; leave out learnings below ${wanted.minConfidence}. If there is nothing to learn, answer {"learnings":[]}.`
  return { system, user: delimited(messages, boundary), answer: LEARNINGS_FORM }
}

function dataRule(boundary: string): string {
  return `Each message stands between <message-${boundary} …> and </message-${boundary}>. ${dataOnly('a message')}`
}

function delimited(messages: readonly ModelMessage[], boundary: string): string {
  const parts = messages.map(
    ({ id, role, content }) =>
      `<message-${boundary} id=${JSON.stringify(id)} role=${JSON.stringify(role)}>\n${content}\n</message-${boundary}>`,
  )
  return `${parts.join('\n')}\n\nThe messages end here. Answer with the JSON object.`
}

/** Room for the tags of one message. */
const TAGS_CHARS = 150

/** A long message is cut with this overlap, so that what stands at a cut is whole in one of the pieces. */
const OVERLAP_CHARS = 200

/** The messages in groups for one call each. A message that is too long for a call is cut into pieces with the same id. */
export function inCalls(
  messages: readonly ModelMessage[],
  charsPerCall: number,
): readonly (readonly [ModelMessage, ...ModelMessage[]])[] {
  const calls: [ModelMessage, ...ModelMessage[]][] = []
  let chars = 0
  for (const piece of messages.flatMap((message) => pieces(message, charsPerCall))) {
    const length = piece.content.length + TAGS_CHARS
    const last = calls.at(-1)
    if (last === undefined || chars + length > charsPerCall + TAGS_CHARS) {
      calls.push([piece])
      chars = length
    } else {
      last.push(piece)
      chars += length
    }
  }
  return calls
}

function pieces(message: ModelMessage, charsMax: number): readonly ModelMessage[] {
  const { content } = message
  if (content.length <= charsMax) return content.trim() === '' ? [] : [message]
  const step = charsMax - OVERLAP_CHARS
  const found: ModelMessage[] = []
  for (let start = 0; start + OVERLAP_CHARS < content.length; start += step) {
    // A surrogate pair that is cut in two becomes one strange character on each side, and stands whole in the overlap.
    found.push({ ...message, content: content.slice(start, start + charsMax).toWellFormed() })
  }
  return found
}

const TEXT = { type: 'string' } as const
const NUMBER = { type: 'number' } as const
const TEXTS = { type: 'array', items: TEXT } as const

function answerForm(name: string, properties: Readonly<Record<string, unknown>>): AnswerForm {
  const item = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
  const schema = {
    type: 'object',
    properties: { [name]: { type: 'array', items: item } },
    required: [name],
    additionalProperties: false,
  }
  return { name, schema }
}

const FINDINGS_FORM = answerForm('findings', { message_id: TEXT, snippet: TEXT, category: TEXT, confidence: NUMBER })
const LEARNINGS_FORM = answerForm('learnings', {
  ...{ category: TEXT, title: TEXT, content: TEXT, confidence: NUMBER },
  ...{ tags: TEXTS, source_message_ids: TEXTS },
})
