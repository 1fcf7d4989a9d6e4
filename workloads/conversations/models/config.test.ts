import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMillraceError } from '../../../src/errors.ts'
import { anthropicModel } from './anthropic.ts'
import { modelFrom } from './config.ts'
import { localModel } from './local.ts'
import { openAiModel } from './openai.ts'

const env = { KEY: 'sk-hidden', EMPTY: ' ', BROKEN: 'sk-hidden\u00fc' }

test('without a configuration the model is local and has no endpoint', () => {
  for (const config of [undefined, null, { kind: 'local' }, { kind: 'local', names: 'off' }]) {
    const { name, endpoint } = modelFrom(config)
    assert.deepEqual({ name, endpoint }, { name: 'local', endpoint: null })
  }
})

test('each kind has its name and the endpoint that it calls', () => {
  const anthropic = modelFrom({ kind: 'anthropic', model: 'claude-haiku-4-5', keyRef: 'env:KEY' }, { env })
  assert.deepEqual([anthropic.name, anthropic.endpoint], ['anthropic:claude-haiku-4-5', 'https://api.anthropic.com'])
  const openAi = modelFrom({ kind: 'openai', url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' }, { env })
  assert.deepEqual([openAi.name, openAi.endpoint], ['openai:qwen3:8b', 'http://127.0.0.1:11434/v1'])
})

test('a configuration that is wrong is refused with what to change, and a key in it is never repeated', () => {
  const openAi = { kind: 'openai', url: 'http://127.0.0.1:1/v1', model: 'm' }
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ['local', /configuration of the model is invalid/],
    [{ kind: 'sk-hidden' }, /model\.kind is not one of local, anthropic, openai/],
    [{ kind: 'local', url: 'http://a.example' }, /Unrecognized key: "url"/],
    [{ ...openAi, key: 'sk-hidden' }, /Unrecognized key: "key"/],
    [{ kind: 'openai', model: 'm' }, /model\.url/],
    [{ kind: 'openai', url: 'http://a.example' }, /model\.model/],
    [{ kind: 'anthropic' }, /model\.model/],
    [{ kind: 'anthropic', model: ' ', keyRef: 'env:KEY' }, /has no name/],
    [{ kind: 'anthropic', model: 'm' }, /environment variable ANTHROPIC_API_KEY is not set/],
    [{ ...openAi, keyRef: 'sk-hidden' }, /'keyRef' is not a reference/],
    [{ ...openAi, keyRef: 'env:EMPTY' }, /environment variable EMPTY is not set/],
    [{ ...openAi, keyRef: 'env:BROKEN' }, /environment variable BROKEN holds characters/],
    [{ ...openAi, url: 'ftp://a.example/v1' }, /not an http or https URL/],
    [{ ...openAi, url: 'http://u:sk-hidden@a.example/v1' }, /has credentials/],
    [{ ...openAi, url: 'http://a.example/v1?key=sk-hidden' }, /a query/],
    [{ ...openAi, charsPerCall: 10 }, /'charsPerCall' is 10/],
  ]
  for (const [config, message] of cases) {
    assert.throws(
      () => modelFrom(config, { env }),
      (error) => {
        assert.ok(isMillraceError(error, 'ERR_OPTION_INVALID'))
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /hidden/)
        return true
      },
    )
  }
})

test('unknown options of the adapters are refused', () => {
  const unknown = { model: 'm', url: 'http://127.0.0.1:1/v1', temperature: 0 }
  for (const make of [openAiModel, anthropicModel, localModel]) {
    assert.throws(() => make(unknown), /'temperature' is not an option|'model' is not an option/)
  }
})
