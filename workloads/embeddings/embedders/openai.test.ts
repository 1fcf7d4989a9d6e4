import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { isMillraceError } from '../../../src/errors.ts'
import { json, modelServer } from '../../../test/fixtures/model-server.ts'
import { embedAll } from '../embedder.ts'
import { openAiEmbedder } from './openai.ts'

const vectorsOf = (texts: readonly string[]) => texts.map((text, index) => ({ index, embedding: [text.length, 1] }))
const env = { KEY: 'sk-test' }

describe('an embedder behind the API of OpenAI', () => {
  test('sends texts, key and model, and reads the vectors in the order of the texts', async (t) => {
    const server = await modelServer(t, (response, { body }) =>
      json(response, { object: 'list', data: vectorsOf(body.input as string[]).reverse(), model: 'm' }),
    )
    const options = { url: `${server.url}/v1`, model: 'm', keyRef: 'env:KEY', env }
    const embedder = openAiEmbedder({ ...options, textsPerCall: 2 })
    const vectors = await embedder.embedBatch(['a', 'bbb', 'cc'])
    assert.deepEqual(vectors, [
      [1, 1],
      [3, 1],
      [2, 1],
    ])
    assert.equal(embedder.model, 'openai:m')
    const [first, second] = server.requests
    assert.deepEqual([first?.path, first?.headers.authorization], ['/v1/embeddings', 'Bearer sk-test'])
    assert.deepEqual(first?.body, { model: 'm', input: ['a', 'bbb'], encoding_format: 'float' })
    assert.deepEqual(second?.body.input, ['cc'])
    await openAiEmbedder({ ...options, dimensions: 2 }).embedBatch(['a'])
    assert.equal(server.requests[2]?.body.dimensions, 2)
  })

  test('an answer with too few vectors, twice the same one or another form is refused', async (t) => {
    const answers: readonly unknown[] = [
      { data: vectorsOf(['a']) },
      { data: [...vectorsOf(['a']), ...vectorsOf(['a'])] },
      {
        data: [
          { index: 1, embedding: [1] },
          { index: 2, embedding: [1] },
        ],
      },
      {
        data: [
          { index: 0, embedding: ['1'] },
          { index: 1, embedding: [1] },
        ],
      },
      'hello',
    ]
    const server = await modelServer(t, (response, _, count) => json(response, answers[count - 1]))
    const embedder = openAiEmbedder({ url: server.url, model: 'm' })
    for (const _ of answers) await assert.rejects(embedder.embedBatch(['a', 'b']), { code: 'ERR_MODEL' })
    assert.equal(server.requests.length, answers.length)
  })

  test('each kind of failure tells the queue what to do', async (t) => {
    const server = await modelServer(t, (response, { body }) => {
      const status = Number((body.input as string[])[0])
      response.writeHead(status, { 'retry-after': '7' }).end('{"error":{"type":"a_reason","message":"secret text"}}')
    })
    const embedder = openAiEmbedder({ url: server.url, model: 'm', keyRef: 'env:KEY', env })
    const failure = async (status: number): Promise<Error> => {
      const error: unknown = await embedder.embedBatch([String(status)]).catch((thrown: unknown) => thrown)
      assert.ok(error instanceof Error)
      assert.doesNotMatch(error.message, /secret text|sk-test/)
      return error
    }
    for (const status of [429, 503]) {
      const error = await failure(status)
      assert.ok(isMillraceError(error, 'ERR_RETRY_AFTER') && Reflect.get(error, 'delay') === 7_000, String(error))
    }
    for (const status of [401, 403]) assert.ok(isMillraceError(await failure(status), 'ERR_NON_RETRYABLE'))
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    const gone = openAiEmbedder({ url: `http://127.0.0.1:${port}`, model: 'm' })
    await assert.rejects(gone.embedBatch(['a']), { code: 'ERR_OFFLINE' })
  })

  test('a hanging server is left when the signal aborts', async (t) => {
    const abort = new AbortController()
    const server = await modelServer(t, () => abort.abort(new Error('timed out')))
    const embedder = openAiEmbedder({ url: server.url, model: 'm' })
    await assert.rejects(embedAll(embedder, ['a'], abort.signal), /timed out/)
  })

  test('options that could never work are refused at the start', () => {
    const refused = (options: object, message: RegExp) =>
      assert.throws(() => openAiEmbedder({ url: 'http://127.0.0.1/v1', model: 'm', ...options }), message)
    refused({ url: 'nowhere' }, /not an http or https URL/)
    refused({ model: '' }, /has no name/)
    refused({ keyRef: 'sk-secret' }, /is not a reference/)
    refused({ textsPerCall: 0 }, /'textsPerCall' is 0/)
    refused({ timeout: 5 }, /'timeout' is not an option/)
  })
})
