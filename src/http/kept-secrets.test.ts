import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { z } from 'zod'
import { bill, stageOn } from '../../test/fixtures/admin.ts'
import { die } from '../../test/fixtures/desk.ts'
import { defineJob } from '../job/definition.ts'
import { hasPlaceholder, REDACTED, Redaction } from '../job/redaction.ts'
import { keepSecrets } from './kept-secrets.ts'

const secret = z.string().meta({ writeOnly: true })
const order = defineJob({
  type: 'order',
  payload: z.object({
    n: z.number(),
    pin: secret,
    cards: z.array(z.object({ holder: z.string(), number: secret })),
    deep: z.object({ apiKey: z.string(), url: z.string() }).optional(),
  }),
})
const redaction = new Redaction([order])
const stored = {
  n: 1,
  pin: '1234',
  cards: [
    { holder: 'Ann', number: '4111' },
    { holder: 'Bob', number: '4222' },
  ],
  deep: { apiKey: 'k-1', url: 'https://a.example' },
}
const kept = (edited: unknown) => keepSecrets(redaction, { type: 'order', payload: JSON.stringify(stored) }, edited)

test('a placeholder at its own place keeps the stored value, and what was typed is taken', () => {
  const { value: shown } = redaction.payload('order', JSON.stringify(stored))
  assert.deepEqual(kept(shown).payload, stored, 'an unchanged payload stays as it is')
  assert.deepEqual(kept({ ...Object(shown), n: 2, pin: '9999' }).payload, { ...stored, n: 2, pin: '9999' })
  const renamed = [
    { holder: 'Anna', number: REDACTED },
    { holder: 'Bob', number: REDACTED },
  ]
  assert.deepEqual(kept({ ...Object(shown), cards: renamed }).payload, {
    ...stored,
    cards: [{ holder: 'Anna', number: '4111' }, stored.cards[1]],
  })
})

test('items that were left alone keep their secrets when others are added or removed', () => {
  const { value } = redaction.payload('order', JSON.stringify(stored))
  const shown = Object(value)
  const [ann, bob] = shown.cards
  const cy = { holder: 'Cy', number: '4333' }
  const [storedAnn, storedBob] = stored.cards
  for (const [cards, expected] of [
    [
      [ann, bob, cy],
      [...stored.cards, cy],
    ],
    [
      [cy, ann, bob],
      [cy, ...stored.cards],
    ],
    [
      [ann, cy, bob],
      [storedAnn, cy, storedBob],
    ],
    [[bob], [storedBob]],
    [
      [{ number: REDACTED, holder: 'Bob' }, cy, cy],
      [storedBob, cy, cy],
    ],
    [[], []],
  ]) {
    assert.deepEqual(kept({ ...shown, cards }).payload, { ...stored, cards: expected })
  }
  const codes = defineJob({ type: 'codes', payload: z.object({ codes: z.array(secret) }) })
  const keptCodes = (edited: readonly string[]) =>
    keepSecrets(new Redaction([codes]), { type: 'codes', payload: '{"codes":["a","b"]}' }, { codes: edited }).payload
  assert.deepEqual(keptCodes([REDACTED, REDACTED, 'c']), { codes: ['a', 'b', 'c'] })
  assert.deepEqual(keptCodes(['c', REDACTED]), { codes: ['c', 'b'] })
  assert.deepEqual(keptCodes([REDACTED]), { codes: [REDACTED] }, 'nobody knows which one is left')
})

test('a secret does not come to a place where it would be shown', () => {
  const pair = defineJob({
    type: 'pair',
    payload: z.object({
      pair: z
        .tuple([z.object({ is: z.string().meta({ writeOnly: true }) }), z.object({ is: z.string() })])
        .rest(z.any()),
    }),
  })
  const both = new Redaction([pair])
  const text = JSON.stringify({ pair: [{ is: 'hidden' }, { is: 'seen' }] })
  const edited = { pair: [{ is: 'first' }, { is: REDACTED }, { is: 'seen' }] }
  assert.doesNotMatch(JSON.stringify(keepSecrets(both, { type: 'pair', payload: text }, edited).payload), /hidden/)
})

test('long lists are compared in little time', () => {
  const cards = Array.from({ length: 20_000 }, (_, n) => ({ holder: `h${n}`, number: '1' }))
  const payload = JSON.stringify({ ...stored, cards })
  const edited = cards.map(({ holder }) => ({ holder: `${holder}x`, number: REDACTED }))
  const startedAt = performance.now()
  const { secrets } = keepSecrets(redaction, { type: 'order', payload }, { ...stored, cards: edited })
  assert.equal(secrets.length, cards.length)
  assert.ok(performance.now() - startedAt < 30_000, `${performance.now() - startedAt} ms`)
})

test('a placeholder at another place, or in a list whose items have moved, keeps nothing', () => {
  const { value: shown } = redaction.payload('order', JSON.stringify(stored))
  const [ann, bob] = Object(shown).cards
  for (const edited of [
    { ...Object(shown), note: REDACTED },
    { ...Object(shown), deep: { url: REDACTED, apiKey: 'x' } },
    { ...Object(shown), n: REDACTED },
    { ...Object(shown), __proto__: null, constructor: REDACTED },
    // The number of one card must not become that of another.
    { ...Object(shown), cards: [bob, ann] },
    { ...Object(shown), cards: [ann, ann, bob] },
    { ...Object(shown), cards: [{ holder: 'Anna', number: REDACTED }] },
    { ...Object(shown), cards: [ann, bob, { holder: 'Cy', number: REDACTED }] },
    REDACTED,
    [REDACTED],
    { pin: { pin: REDACTED } },
  ]) {
    const { payload } = kept(edited)
    assert.ok(hasPlaceholder(payload), JSON.stringify(payload))
    for (const number of ['4111', '4222']) {
      const places = JSON.stringify(payload).split(number).length - 1
      assert.ok(places <= 1, JSON.stringify(payload))
    }
  }
  assert.doesNotMatch(JSON.stringify(kept({ note: REDACTED, deep: { url: REDACTED } }).payload), /1234|k-1|4111/)
})

test('a long list is compared in time in proportion to its length, and one that is nested deeply is left as it is', () => {
  const [before, after] = [0, 100_000].map((first) => Array.from({ length: 100_000 }, (_, index) => first + index))
  const numbers = { type: 'numbers', payload: JSON.stringify({ pin: 1, password: 'x', list: before }) }
  const startedMs = performance.now()
  const { payload } = keepSecrets(redaction, numbers, { pin: 1, password: REDACTED, list: after })
  assert.deepEqual(payload, { pin: 1, password: 'x', list: after })
  // Each with each would take minutes.
  assert.ok(performance.now() - startedMs < 30_000)
  const deep: unknown = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000))
  assert.deepEqual(keepSecrets(redaction, numbers, { list: [deep] }).secrets, [])
})

test('a letter with a secret is mended without retyping it, and only from the letter itself', async (t) => {
  const { ask, send, mill, bury } = await stageOn(t, 'sqlite:')
  const id = await bury('bill', 'boom', { n: 1, pin: '1234' })
  const other = await bury('bill', 'boom', { n: 1 })
  const payload = { n: 2, pin: REDACTED }
  const dry = await ask('replayDeadLetter', { params: { id }, body: { payload, dryRun: true } })
  assert.deepEqual(dry, { id, replayed: false })
  // The other letter has no such secret, so there is nothing to keep.
  const refused = await send('replayDeadLetter', { params: { id: other }, body: { payload } })
  assert.deepEqual([refused.status, refused.body.code], [400, 'ERR_REQUEST_INVALID'])
  assert.match(refused.body.message ?? '', /at 'pin' '\[redacted\]'.*type the value/)
  assert.deepEqual(
    refused.body.issues?.map(({ path }) => path),
    ['body.payload.pin'],
  )
  const unknown = await send('replayDeadLetter', { params: { id: 'none' }, body: { payload } })
  assert.equal(unknown.status, 404)
  await ask('replayDeadLetter', { params: { id }, body: { payload, reason: 'mended' } })
  assert.equal((await mill.job(id))?.payload, '{"n":2,"pin":"1234"}')
  const enqueued = await send('enqueueJob', { body: { type: 'bill', payload } })
  assert.equal(enqueued.status, 400, 'a new job has nothing to keep')
  assert.equal((await mill.job(other))?.state, 'dead_letter')
})

test('an objection to a kept secret does not tell it', async (t) => {
  // Valibot quotes what it received.
  const pay = defineJob({
    type: 'pay',
    payload: v.object({ n: v.number(), password: v.pipe(v.string(), v.regex(/^\d+$/)) }),
  })
  const { send, mill } = await stageOn(t, 'sqlite:', { jobs: [bill, pay] })
  const { id } = await mill.enqueue(defineJob({ type: 'pay' }), { n: 1, password: 'open sesame' })
  await die(mill, 'pay', 'boom')
  const { status, body } = await send('replayDeadLetter', {
    params: { id },
    body: { payload: { n: 2, password: REDACTED } },
  })
  assert.deepEqual([status, body.code], [400, 'ERR_PAYLOAD_INVALID'])
  assert.doesNotMatch(JSON.stringify(body), /sesame/)
  assert.match(body.message ?? '', /kept secret/)
  const typed = await send('replayDeadLetter', { params: { id }, body: { payload: { n: 'x', password: '123' } } })
  assert.match(typed.body.message ?? '', /received "x"/, 'other objections are told as they are')
})

test('a job of a queue with many names keeps the secrets that the schema of its name marks', () => {
  const queue = defineJob({ type: 'ruvbot', byName: [order] })
  const named = { type: 'ruvbot', payload: JSON.stringify(stored), options: { name: 'order' } }
  const { value: shown } = new Redaction([queue]).payload('ruvbot', named.payload, 'order')
  assert.deepEqual(keepSecrets(new Redaction([queue]), named, { ...Object(shown), n: 5 }).payload, { ...stored, n: 5 })
})
