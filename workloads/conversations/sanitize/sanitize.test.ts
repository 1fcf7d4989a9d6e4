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
