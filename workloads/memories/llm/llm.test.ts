import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { isMillraceError } from '../../../src/index.ts'
import { anthropicDialect, json, modelServer, openAiDialect } from '../../../test/fixtures/model-server.ts'
import { synthesisPrompt } from '../consolidation/prompt.ts'
import { anthropicLlm, openAiLlm } from './apis.ts'
import { localLlm } from './local.ts'

const WANTED = { maxTokens: 200, temperature: 0.3 }
const env = { KEY: 'k-123' }

/** Where nobody listens any more. */
async function closedAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

for (const dialect of [anthropicDialect, openAiDialect]) {
  const llmAt = (url: string) => {
    const options = { model: 'm', keyRef: 'env:KEY', url: `${url}${dialect.base}`, env }
    return dialect.kind === 'anthropic' ? anthropicLlm(options) : openAiLlm(options)
  }

  // A85
  test(`${dialect.kind}: the prompt is sent with the limit of tokens and the temperature`, async (t) => {
    const server = await modelServer(t, (response) => json(response, dialect.said(' both ')))
    assert.deepEqual(await llmAt(server.url).complete('the prompt', WANTED), { text: ' both ' })
    const [request] = server.requests
    assert.ok(request)
    assert.equal(request.path, dialect.path)
    assert.equal(dialect.user(request), 'the prompt')
    assert.equal(dialect.key(request), 'k-123')
    assert.partialDeepStrictEqual(request.body, { model: 'm', max_tokens: 200, temperature: 0.3 })
  })

  test(`${dialect.kind}: failures decide what the queue does`, async (t) => {
    const answers = [
      { status: 429, code: 'ERR_RETRY_AFTER' },
      { status: 401, code: 'ERR_NON_RETRYABLE' },
      { status: 500, code: 'ERR_MODEL' },
    ] as const
    for (const { status, code } of answers) {
      const server = await modelServer(t, (response) => json(response, {}, status))
      await assert.rejects(llmAt(server.url).complete('p', WANTED), { code })
    }
    const cut = await modelServer(t, (response) => json(response, dialect.said('half', 'cut')))
    await assert.rejects(llmAt(cut.url).complete('p', WANTED), { name: 'ModelFailure', message: /cut off/ })
    await assert.rejects(llmAt(await closedAddress()).complete('p', WANTED), (error) =>
      isMillraceError(error, 'ERR_OFFLINE'),
    )
    const server = await modelServer(t, () => {})
    await assert.rejects(llmAt(server.url).complete('p', WANTED, { signal: AbortSignal.timeout(50) }), {
      name: 'TimeoutError',
    })
  })
}

test('openai: a server that refuses the temperature is asked without it, then and from there on', async (t) => {
  const server = await modelServer(t, (response, { body }) =>
    'temperature' in body
      ? json(response, { error: { message: "Unsupported value: 'temperature'" } }, 400)
      : json(response, openAiDialect.said('ok')),
  )
  const llm = openAiLlm({ url: `${server.url}/v1`, model: 'm' })
  for (let count = 0; count < 2; count += 1) assert.deepEqual(await llm.complete('p', WANTED), { text: 'ok' })
  assert.equal(server.requests.length, 3)
})

test('unknown options are refused', () => {
  // @ts-expect-error: it is 'model'
  assert.throws(() => openAiLlm({ url: 'http://127.0.0.1', modell: 'm' }), /did you mean 'model'/)
})

const answer = async (contents: readonly string[], maxTokens = 200) => {
  const { text } = await localLlm().complete(synthesisPrompt(contents).text, { ...WANTED, maxTokens })
  return text
}

test('the local model keeps each statement once, in order, and always the same', async () => {
  const contents = [
    'Ann drinks green tea in the morning.',
    'In the morning Ann drinks green tea',
    'Ann drinks green tea from Japan. She buys it online.',
  ]
  const text = await answer(contents)
  assert.equal(text, await answer(contents))
  assert.equal(text, 'Ann drinks green tea in the morning. She buys it online.')
})

test('the local model keeps to its limit, whatever it is given', async () => {
  for (const content of ['word '.repeat(2_000), 'x'.repeat(9_000), '😀'.repeat(900), '1. 2. 3.', '…']) {
    const text = await answer([content, content], 20)
    assert.ok(text !== '' && text.length <= 81 && text.isWellFormed(), text)
  }
  assert.deepEqual(await localLlm().complete('no list', WANTED), { text: '' })
})
