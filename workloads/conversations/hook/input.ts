/** What the hook reads: one JSON object, in the form of this pipeline or in that of coding assistants' hooks. */
import { sha256 } from '../store/sha256.ts'

export type Role = 'user' | 'assistant'

/** `{ event, conversation_id, content }`, or what an assistant writes: `{ hook_event_name, session_id, prompt }`. */
export type HookInput = Readonly<Record<string, unknown>>

/** A message as it arrived: not sanitised, so it is never stored or logged. */
export interface RawMessage {
  readonly event: string
  /** A ULID. */
  readonly conversationId: string
  readonly role: Role
  readonly content: string
}

export type ReadInput =
  | { readonly message: RawMessage }
  /** The reason names no content. */
  | { readonly message: null; readonly isFault: boolean; readonly reason: string }

interface MessageEvent {
  readonly role: Role
  /** Where the text is. The first that is there counts. */
  readonly fields: readonly string[]
}

const PROMPT: MessageEvent = { role: 'user', fields: ['prompt', 'content'] }

/** Events with a message, by the names of Claude Code and Codex, Gemini CLI, and Cursor. */
const MESSAGE_EVENTS: Readonly<Record<string, MessageEvent>> = {
  UserPromptSubmit: PROMPT,
  Stop: { role: 'assistant', fields: ['last_assistant_message', 'content'] },
  SubagentStop: { role: 'assistant', fields: ['last_assistant_message', 'content'] },
  BeforeAgent: PROMPT,
  AfterAgent: { role: 'assistant', fields: ['prompt_response', 'content'] },
  beforeSubmitPrompt: PROMPT,
  afterAgentResponse: { role: 'assistant', fields: ['text', 'content'] },
}

/** Never throws, whatever the value is. */
export function readInput(input: unknown): ReadInput {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return refuse('standard input is not a JSON object')
  }
  const event = textOf(input, ['event', 'hook_event_name'])
  if (event === null) return refuse("the input has neither 'event' nor 'hook_event_name'")
  const known = Object.hasOwn(MESSAGE_EVENTS, event) ? MESSAGE_EVENTS[event] : undefined
  // The name is not repeated: it could be anything.
  if (known === undefined) return ignore('the event brings no message of the conversation')
  const session = textOf(input, ['conversation_id', 'session_id'])
  if (session === null) return refuse("the input has neither 'conversation_id' nor 'session_id'")
  const content = textOf(input, known.fields)
  if (content === null || content.trim() === '') {
    return known.role === 'user'
      ? refuse("the input has neither 'prompt' nor 'content'")
      : ignore('the event has no text')
  }
  return { message: { event, conversationId: toConversationId(session), role: known.role, content } }
}

const refuse = (reason: string): ReadInput => ({ message: null, isFault: true, reason })
const ignore = (reason: string): ReadInput => ({ message: null, isFault: false, reason })

function textOf(input: object, fields: readonly string[]): string | null {
  for (const field of fields) {
    const value: unknown = Object.hasOwn(input, field) ? Reflect.get(input, field) : undefined
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

/** Crockford's base 32. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID_DIGITS = 26
/** A higher first digit would not fit into 128 bits. */
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

/**
 * The session's id if it is a ULID. A UUID has as many bits as a ULID and keeps them; of anything else it is the first 128 bits of
 * the SHA-256. Always the same for the same session.
 */
export function toConversationId(session: string): string {
  if (ULID.test(session)) return session
  const bits = UUID.test(session) ? Buffer.from(session.replaceAll('-', ''), 'hex') : sha256(Buffer.from(session))
  let text = ''
  // Five bits each, from the left; the first digit has three of the 128.
  for (let digit = 0; digit < ULID_DIGITS; digit += 1) {
    const [first, count] = digit === 0 ? [0, 3] : [digit * 5 - 2, 5]
    let value = 0
    for (let bit = first; bit < first + count; bit += 1) {
      value = value * 2 + (((bits[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1)
    }
    text += DIGITS.charAt(value)
  }
  return text
}
