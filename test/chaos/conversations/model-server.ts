/** A model server on loopback, in the form of chat completions, whose answers are good, wrong, slow or missing by a seed. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

export interface ModelServer {
  readonly url: string
  /** Everything that it was sent. */
  readonly received: readonly string[]
  /** How often it answered in each way. */
  readonly answers: Readonly<Record<string, number>>
  /** From now on every answer is good. */
  calm(): void
  close(): Promise<void>
}

const HANG_MS = 20_000

export async function startModelServer(random: () => number): Promise<ModelServer> {
  const received: string[] = []
  const answers: Record<string, number> = {}
  const deck: string[] = []
  let isCalm = false
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push(body)
      const how = isCalm ? 'good' : drawFrom(deck, random)
      answers[how] = (answers[how] ?? 0) + 1
      answer(how, body, response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${portOf(server)}/v1`,
    received,
    answers,
    calm: () => {
      isCalm = true
    },
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

/** Drawn without putting back, so that any sixteen answers in a row from a full deck have every kind: a draw of its own for each could miss one. */
const DECK = 'good good good good good good good good nonsense nonsense busy busy error denied cut silent'.split(' ')

function drawFrom(deck: string[], random: () => number): string {
  if (deck.length === 0) deck.push(...DECK)
  return deck.splice(Math.floor(random() * deck.length), 1)[0] ?? 'good'
}

/** The bad answers quote what was sent: errors, results and dead letters must not carry more than that. */
function answer(how: string, body: string, response: ServerResponse, request: IncomingMessage): void {
  const json = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
  }
  const quoted = { error: { message: body } }
  if (how === 'cut') request.socket.destroy()
  else if (how === 'silent') setTimeout(() => request.socket.destroy(), HANG_MS).unref()
  else if (how === 'busy') json(429, quoted, { 'retry-after': '1' })
  else if (how === 'error') json(500, quoted)
  else if (how === 'denied') json(401, quoted)
  else if (how === 'nonsense') json(200, completion(`I cannot do that. You wrote: ${body}`))
  else json(200, completion(JSON.stringify(goodAnswer(body))))
}

function completion(content: string): object {
  const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }
  return { choices: [choice], usage: { prompt_tokens: 1, completion_tokens: 1 } }
}

/** One learning for each message, or one finding: the word that no rule knows. */
function goodAnswer(body: string): object {
  const { messages } = JSON.parse(body) as { messages: { role: string; content: string }[] }
  const prompt = messages.find(({ role }) => role === 'user')?.content ?? ''
  const isExtraction = messages.some(({ content }) => content.includes('"learnings"'))
  const given = [...prompt.matchAll(/<message-\w+ id="([^"]+)" role="\w+">\n([\s\S]*?)\n<\/message-/g)]
  if (!isExtraction) {
    const found = given.filter(([, , content = '']) => content.includes('timeout'))
    const finding = { snippet: 'timeout', category: 'other', confidence: 0.9 }
    return { findings: found.map(([, id]) => ({ message_id: id, ...finding })) }
  }
  return {
    learnings: given.map(([, id, content = '']) => ({
      category: 'fix',
      title: 'A fix',
      content: content.slice(0, 3_000),
      confidence: 0.9,
      tags: ['proxy'],
      source_message_ids: [id],
    })),
  }
}
