import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSanitizer, SANITIZATION_VERSION } from './sanitize.ts'

const sanitize = createSanitizer()

// X127
test('a finding names its rule, category and replacement, and the result names the version of the rules', () => {
  assert.deepEqual(sanitize('write to john@example.com today'), {
    text: 'write to [EMAIL] today',
    findings: [{ rule: 'mail', category: 'email', replacement: '[EMAIL]', snippet: 'john@example.com' }],
    version: SANITIZATION_VERSION,
  })
})

test('a text in which something is still found after twelve rounds is removed as a whole', () => {
  const rule = { id: 'nested', category: 'secret', replacement: '[X]', pattern: 'a(?:\\[X\\])?b' }
  const sanitize = createSanitizer({ rules: [rule] })
  const nested = (depth: number): string => `see ${'a'.repeat(depth)}${'b'.repeat(depth)}`
  assert.equal(sanitize(nested(11)).text, 'see [X]')
  const { text, findings } = sanitize(nested(13))
  assert.equal(text, '[REMOVED]')
  assert.equal(sanitize(text).text, text)
  assert.ok(findings.every(({ replacement }) => replacement !== ''))
})
