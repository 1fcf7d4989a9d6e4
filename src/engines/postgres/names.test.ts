import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineError } from '../../errors.ts'
import { literal, namesIn, quote } from './names.ts'

test('names and texts cannot leave their place in a statement', () => {
  assert.equal(quote('a"b'), '"a""b"')
  assert.equal(literal(`it's`), `'it''s'`)
  for (const bad of ['', 'a\0b', 'é'.repeat(32)]) assert.throws(() => quote(bad), EngineError)
})

test('the channel of a schema is one that the server takes, and its own', () => {
  assert.equal(namesIn('public').channel, 'millrace:public')
  const [one, other] = [namesIn(`${'é'.repeat(30)}a`).channel, namesIn(`${'é'.repeat(30)}b`).channel]
  for (const channel of [one, other]) assert.ok(Buffer.byteLength(channel) < 64, channel)
  assert.notEqual(one, other)
})
