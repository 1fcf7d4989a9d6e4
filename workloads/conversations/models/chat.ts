/** A model that is asked by chat: what the adapters of the two APIs share. */
import { OptionError } from '../../../src/errors.ts'
import type { ChatReply, ModelCall } from '../../language-models/model-call.ts'
import { readFindings, readLearnings } from './answer.ts'
import type { Model, ModelAnswer, ModelFinding, ModelLearning, ModelMessage } from './model.ts'
import {
  inCalls,
  learningCategories,
  learningsPrompt,
  type Prompt,
  personalDataPrompt,
  type WantedLearnings,
} from './prompt.ts'

export interface ChatModelOptions {
  readonly name: string
  readonly endpoint: string
  /** Characters of messages in one call. Longer conversations take several calls, one after another. */
  readonly charsPerCall: number
  ask(prompt: Prompt, call: ModelCall): Promise<ChatReply>
}

/** Pieces of long messages overlap, so they cannot be much smaller. */
const CHARS_PER_CALL_MIN = 1_000

/** One question: how it is put for some of the messages, and how its answer is read. */
interface Question<Item> {
  prompt(part: readonly ModelMessage[]): Prompt
  read(text: string, asked: ReadonlyMap<string, ModelMessage>): readonly Item[]
  /** Pieces of one message overlap, so an item can come twice. */
  identity(item: Item): string
}

const personalData: Question<ModelFinding> = {
  prompt: personalDataPrompt,
  read: readFindings,
  identity: ({ message_id, snippet }) => `${message_id} ${snippet}`,
}

const learnings = (wanted: WantedLearnings): Question<ModelLearning> => ({
  prompt: (part) => learningsPrompt(part, wanted),
  read: (text, asked) => readLearnings(text, asked, learningCategories(wanted)),
  identity: ({ category, content }) => `${category} ${content}`,
})

export function chatModel({ name, endpoint, charsPerCall, ask }: ChatModelOptions): Model {
  if (!Number.isInteger(charsPerCall) || charsPerCall < CHARS_PER_CALL_MIN) {
    throw new OptionError(`'charsPerCall' is ${charsPerCall}; give a whole number of at least ${CHARS_PER_CALL_MIN}`)
  }
  const askAll = async <Item>(
    question: Question<Item>,
    messages: readonly ModelMessage[],
    call: ModelCall,
  ): Promise<ModelAnswer<readonly Item[]>> => {
    const whole = new Map(messages.map((message) => [message.id, message]))
    const items = new Map<string, Item>()
    const usage = { inputTokens: 0, outputTokens: 0 }
    for (const part of inCalls(messages, charsPerCall)) {
      call.signal.throwIfAborted()
      const reply = await ask(question.prompt(part), call)
      usage.inputTokens += reply.usage.inputTokens
      usage.outputTokens += reply.usage.outputTokens
      const asked = new Map(part.map((piece) => [piece.id, whole.get(piece.id) ?? piece]))
      for (const item of question.read(reply.text, asked)) items.set(question.identity(item), item)
    }
    return { items: [...items.values()], usage }
  }
  return {
    name,
    endpoint,
    findPersonalData: (messages, call) => askAll(personalData, messages, call),
    findLearnings: (messages, wanted, call) => askAll(learnings(wanted), messages, call),
  }
}
