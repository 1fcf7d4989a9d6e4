import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { z } from 'zod'
import { stageOn } from '../../test/fixtures/admin.ts'
import { die } from '../../test/fixtures/desk.ts'
import { defineJob } from './definition.ts'
import { hasPlaceholder, isSensitiveName, REDACTED, Redaction } from './redaction.ts'

const shown = (redaction: Redaction, type: string, payload: unknown) => redaction.payload(type, JSON.stringify(payload))
const secret = z.string().meta({ writeOnly: true })

test('what a schema marks is replaced at any depth, and the rest is shown', () => {
  const card = z.object({ holder: z.string(), number: z.string().meta({ format: 'password' }) })
  const order = defineJob({
    type: 'order',
    payload: z.object({
      id: z.number(),
      pin: secret,
      cards: z.array(card),
      pair: z.tuple([z.string(), secret]),
      byName: z.record(z.string(), z.object({ pin: secret, n: z.number() })),
      either: z.union([
        z.object({ kind: z.literal('a'), a: secret }),
        z.object({ kind: z.literal('b'), b: z.string() }),
      ]),
      whole: z.object({ x: z.number() }).meta({ writeOnly: true }).optional(),
      when: z.coerce.date().optional(),
    }),
  })
  const { value, redacted } = shown(new Redaction([order]), 'order', {
    id: 1,
    pin: '1234',
    cards: [{ holder: 'Ann', number: '4111' }],
    pair: ['open', 'closed'],
    byName: { one: { pin: '9', n: 2 } },
    either: { kind: 'a', a: 'hidden' },
    whole: { x: 1 },
  })
  assert.deepEqual(value, {
    id: 1,
    pin: REDACTED,
    cards: [{ holder: 'Ann', number: REDACTED }],
    pair: ['open', REDACTED],
    byName: { one: { pin: REDACTED, n: 2 } },
    either: { kind: 'a', a: REDACTED },
    whole: REDACTED,
  })
  assert.equal(redacted, true)
})

test('a schema that refers to itself, and one with an id, are followed', () => {
  interface Node {
    pin: string
    children: Node[]
  }
  const node: z.ZodType<Node> = z.lazy(() => z.object({ pin: secret, children: z.array(node) }))
  const named = z.object({ pin: secret }).meta({ id: 'redaction-test-named' })
  const redaction = new Redaction([
    defineJob({ type: 'tree', payload: node }),
    defineJob({ type: 'named', payload: z.object({ a: named, b: named }) }),
  ])
  const leaf = { pin: '1', children: [] }
  assert.deepEqual(shown(redaction, 'tree', { ...leaf, children: [leaf] }).value, {
    pin: REDACTED,
    children: [{ pin: REDACTED, children: [] }],
  })
  assert.deepEqual(shown(redaction, 'named', { a: { pin: '1' }, b: { pin: '2' } }).value, {
    a: { pin: REDACTED },
    b: { pin: REDACTED },
  })
})

test('a secret is known by its name where no schema says otherwise', () => {
  const open = z.string().meta({ writeOnly: false })
  const redaction = new Redaction([defineJob({ type: 'open', payload: z.object({ token: open, apiKey: z.string() }) })])
  assert.deepEqual(shown(redaction, 'open', { token: 'shown', apiKey: 'k' }).value, {
    token: 'shown',
    apiKey: REDACTED,
  })
  const foreign = {
    list: [{ user: 'ann', Password: 'x', 'api-key': 'y', github_token: 'z', Authorization: 'b' }],
    tokens: 9,
  }
  assert.deepEqual(shown(redaction, 'foreign', foreign).value, {
    list: [{ user: 'ann', Password: REDACTED, 'api-key': REDACTED, github_token: REDACTED, Authorization: REDACTED }],
    tokens: 9,
  })
  const many = {
    passwords: ['x'],
    apiKeys: { stripe: 'y' },
    refreshTokens: 'z',
    secrets: 'w',
    maxTokens: 500,
    cookies: 2,
  }
  assert.deepEqual(shown(redaction, 'foreign', many).value, {
    ...{
      passwords: REDACTED,
      apiKeys: REDACTED,
      refreshTokens: REDACTED,
      secrets: REDACTED,
      maxTokens: 500,
      cookies: 2,
    },
  })
  assert.deepEqual(redaction.named({ a: { clientSecret: 1 }, b: null }), { a: { clientSecret: REDACTED }, b: null })
  assert.equal(shown(redaction, 'foreign', { user: 'ann' }).redacted, false)
})

test('names that hold secrets, and names that only look alike', () => {
  for (const name of [
    'password',
    'newPassword',
    'API_KEY',
    'accessToken',
    'private_key',
    'secret',
    'set-cookie',
    'pwd',
    'secretKey',
    'AWS_SECRET_ACCESS_KEY',
    'signingKey',
    'encryption_key',
  ]) {
    assert.ok(isSensitiveName(name), name)
  }
  for (const name of [
    'tokens',
    'tokenCount',
    'secretary',
    'passenger',
    'key',
    'accessKeyId',
    'monkey',
    'author',
    'compass',
  ]) {
    assert.ok(!isSensitiveName(name), name)
  }
})

test('a schema that cannot say what it holds hides all of it; one without JSON Schema is read by names', () => {
  const plain = v.object({ password: v.string(), n: v.number() })
  const convert = () => {
    throw new Error('no')
  }
  const standard = {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) => ({ value }),
    jsonSchema: { input: convert },
  } as const
  const redaction = new Redaction([
    defineJob({ type: 'plain', payload: plain }),
    defineJob({ type: 'broken', payload: { '~standard': standard } }),
  ])
  assert.deepEqual(shown(redaction, 'plain', { password: 'x', n: 1 }).value, { password: REDACTED, n: 1 })
  assert.deepEqual(shown(redaction, 'broken', { n: 1 }), { value: REDACTED, redacted: true })
})

test('whatever stands in a payload is shown, and nothing hangs or throws', () => {
  const redaction = new Redaction([])
  assert.equal(redaction.payload('x', 'no json').value, 'no json')
  for (const text of ['null', '1', '"a"', '[]', '{"__proto__":{"a":1},"constructor":1}']) {
    assert.deepEqual(redaction.payload('x', text).value, JSON.parse(text))
  }
  const deep = redaction.payload('x', `${'['.repeat(50_000)}${']'.repeat(50_000)}`)
  assert.match(JSON.stringify(deep.value), /nested too deeply/)
})

test('a placeholder is found wherever it stands', () => {
  assert.ok(hasPlaceholder({ a: [{ b: REDACTED }] }))
  assert.ok(hasPlaceholder(REDACTED))
  assert.ok(!hasPlaceholder({ a: ['[redact]', null, 1], b: `${REDACTED} in a sentence` }))
  assert.ok(!hasPlaceholder(undefined))
})

test('a payload of a queue with many names is shown by the schema of its name, and not at all where that is not known', () => {
  const mail = defineJob({ type: 'mail', payload: z.object({ pin: secret, n: z.number() }) })
  const queue = defineJob({ type: 'ruvbot', byName: [mail, defineJob({ type: 'sync' })] })
  const redaction = new Redaction([queue])
  const text = '{"pin":"1234","n":1}'
  assert.deepEqual(redaction.payload('ruvbot', text, 'mail').value, { pin: REDACTED, n: 1 })
  assert.deepEqual(redaction.payload('ruvbot', text, 'sync').value, { pin: '1234', n: 1 })
  assert.equal(redaction.payload('ruvbot', text).value, REDACTED)
  assert.deepEqual(redaction.payload('other', text).value, { pin: '1234', n: 1 })
})

test('the API shows a job of such a queue without its secrets', async (t) => {
  const mail = defineJob({ type: 'mail', payload: z.object({ pin: secret, n: z.number() }) })
  const queue = defineJob({ type: 'ruvbot', byName: [mail] })
  const { mill, ask } = await stageOn(t, 'memory:', { jobs: [queue] })
  const { id } = await mill.enqueue(queue, { pin: '1234', n: 1 }, { name: 'mail' })
  const { job } = await ask('showJob', { params: { id } })
  assert.deepEqual([job.payload, job.options], [{ pin: REDACTED, n: 1 }, { name: 'mail' }])
  await die(mill, 'ruvbot', 'boom')
  const letter = await ask('showDeadLetter', { params: { id } })
  assert.deepEqual([letter.job.payload, letter.redacted], [{ pin: REDACTED, n: 1 }, true])
})
