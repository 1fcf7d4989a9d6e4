import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { view } from '../../test/fixtures/explained.ts'
import { defineJob } from './definition.ts'
import { Redaction } from './redaction.ts'
import { parseSearch } from './search.ts'
import { matcherOf } from './search-match.ts'

const pay = defineJob({
  type: 'pay',
  payload: z.object({
    card: z.string().meta({ writeOnly: true }),
    accessToken: z.string().meta({ writeOnly: false }),
    maxTokens: z.number(),
    items: z.array(z.object({ pin: z.string().meta({ writeOnly: true }), sku: z.string() })),
  }),
})
const redaction = new Redaction([pay])
const payload = JSON.stringify({ card: '4711', accessToken: 'open', maxTokens: 3, items: [{ pin: '1', sku: 'a' }] })
const finds = (text: string, job = view({ type: 'pay', payload })) => matcherOf(parseSearch(text, 0), redaction)(job)

test('what is redacted in a payload cannot be searched, and what is shown can', () => {
  for (const text of [
    'type:pay payload.card:4711',
    'payload.password:x',
    'payload.a.apiKey:x',
    'type:pay payload.items.0.pin:1',
  ]) {
    assert.throws(() => finds(text), { code: 'ERR_OPTION_INVALID', message: /is redacted, so it cannot be searched/ })
  }
  for (const text of ['payload.accessToken:open', 'type:pay payload.maxTokens:3', 'payload.items.0.sku:a']) {
    assert.equal(finds(text), true, text)
  }
})

test('a field that is hidden in one type alone is not found there by its value', () => {
  // Jobs of other types may show such a field, so the search is allowed.
  assert.equal(finds('payload.card:4711'), false)
  assert.equal(finds('payload.card:4711', view({ type: 'other', payload })), true)
  assert.equal(finds('payload.card:[redacted]'), true)
})

test('values are compared as text, lists by their items, and inherited properties are none', () => {
  const job = view({ payload: '{"a":null,"b":true,"c":[1,"x"],"d":{}}' })
  for (const text of ['payload.a:null', 'payload.b:true', 'payload.c:1', 'payload.c.1:x']) {
    assert.equal(finds(text, job), true, text)
  }
  for (const text of [
    'payload.d:[object',
    'payload.constructor.name:Object',
    'payload.c.length:2x',
    'payload.e:undefined',
  ]) {
    assert.equal(finds(text, job), false, text)
  }
})
