import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { tempFiles } from '../../test/fixtures/temp-files.ts'
import { loadConfig } from './config.ts'

const files = tempFiles()

function configFile(content: unknown): string {
  const file = files.next()
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const UPLOAD = {
  ...{ ipfsEndpoint: 'http://127.0.0.1:5001', rpcUrl: 'http://127.0.0.1:8545', chainId: 31337 },
  ...{ contractAddress: `0x${'ab'.repeat(20)}`, privateKeyRef: 'env:KEY' },
}

test('a whole configuration is read as it is', () => {
  const config = {
    model: { kind: 'openai', url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' },
    extract: { minConfidence: 0.8, categories: ['fix'] },
    upload: { ...UPLOAD, confirmations: 1, poll: '2s' },
    rules: [{ id: 'customers', category: 'customer', replacement: '[CUSTOMER]', terms: ['Acme Ltd'] }],
    retentionDays: 90,
  }
  assert.deepEqual(loadConfig(configFile(config)), config)
})

test('the file of the environment need not exist, a named one must', () => {
  const missing = files.next()
  const refusal = { code: 'ERR_OPTION_INVALID', message: /does not exist; create it/ }
  assert.throws(() => loadConfig(missing), refusal)
  // A mistyped name would otherwise mean: none of your rules.
  assert.throws(() => loadConfig(null, { MILLRACE_CONVERSATIONS_CONFIG: missing }), refusal)
  const file = configFile({ retentionDays: 3 })
  assert.deepEqual(loadConfig(null, { MILLRACE_CONVERSATIONS_CONFIG: file }), { retentionDays: 3 })
})

test('what is wrong is refused with its place, and no value is repeated', () => {
  const secret = '0x5f3b8a7c'
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [`{ ${secret}`, /is not a JSON object/],
    [[], /is not a JSON object/],
    [{ modle: {} }, /it: Unrecognized key: "modle"/],
    [{ model: { kind: 'other' } }, /model/],
    [{ extract: { minConfidence: 1.1 } }, /extract\.minConfidence/],
    [{ upload: { ...UPLOAD, privateKeyRef: secret } }, /upload\.privateKeyRef: is no reference; give env:NAME/],
    [
      { upload: { ...UPLOAD, privateKeyRef: `env:${secret.padEnd(66, '0')}` } },
      /upload\.privateKeyRef: is no reference/,
    ],
    [{ upload: { ...UPLOAD, chainId: secret } }, /upload\.chainId/],
    [{ upload: { ...UPLOAD, poll: secret } }, /upload\.poll: is no duration/],
    [{ upload: { ...UPLOAD, ipfsEndpoint: 'file:///etc' } }, /upload\.ipfsEndpoint/],
    [{ upload: { ipfsEndpoint: UPLOAD.ipfsEndpoint } }, /upload\.rpcUrl/],
    [{ rules: [{ id: 'a' }] }, /rules\.0: the category of 'a'/],
    [{ retentionDays: 0 }, /retentionDays/],
  ]
  for (const [content, message] of wrong) {
    assert.throws(
      () => loadConfig(configFile(content)),
      (error: Error) => {
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, new RegExp(secret))
        return Reflect.get(error, 'code') === 'ERR_OPTION_INVALID'
      },
    )
  }
})
