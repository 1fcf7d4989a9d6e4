import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { defineJob } from '../job/definition.ts'
import { Redaction } from '../job/redaction.ts'
import { isHashOf, noteEdit } from './edit-note.ts'

const order = defineJob({
  type: 'order',
  payload: z.object({
    id: z.number(),
    pin: z.string().meta({ writeOnly: true }),
    items: z.array(z.object({ name: z.string(), price: z.number() })),
    card: z.object({ number: z.string() }).meta({ writeOnly: true }).optional(),
    note: z.string().optional(),
  }),
})

const noted = (before: unknown, after: unknown, jobs: readonly (typeof order)[] = [order]) =>
  noteEdit(new Redaction(jobs), { type: 'order' }, { before: JSON.stringify(before), after: JSON.stringify(after) })

const payload = { id: 1, pin: '1234', items: [{ name: 'tea', price: 3 }], card: { number: '4111' } }

test('names each part that changed, with values where the schema does not mark them', async () => {
  const after = {
    items: [
      { price: 4, name: 'tea' },
      { name: 'jam', price: 2 },
    ],
    pin: '99',
    id: 1,
    note: 'late',
  }
  const note = await noted(payload, after)
  assert.deepEqual(note.changed, [
    { path: '/pin' },
    { path: '/items/0/price', before: 3, after: 4 },
    { path: '/items/1', after: { name: 'jam', price: 2 } },
    { path: '/card' },
    { path: '/note', after: 'late' },
  ])
  assert.doesNotMatch(JSON.stringify(note), /1234|99"|4111/)
})

test('gives no value without a schema, and none that is long', async () => {
  const unknown = await noted(payload, { ...payload, id: 2, 'a/b~c': 1 }, [])
  assert.deepEqual(unknown.changed, [{ path: '/id' }, { path: '/a~1b~0c' }])
  const long = await noted({ ...payload, note: 'x'.repeat(500) }, { ...payload, note: 'y' })
  assert.deepEqual(long.changed, [{ path: '/note', after: 'y', long: ['before'] }])
  const secret = await noted({ ...payload, pin: 'x'.repeat(500) }, payload)
  assert.deepEqual(secret.changed, [{ path: '/pin' }], 'also how long a secret is is not told')
})

test('a password by its name is a secret, whatever the schema says of the rest', async () => {
  const before = { ...payload, apiKey: 'abc', deep: { token: 't1', plain: 1 } }
  const { changed } = await noted(before, { ...before, apiKey: 'def', deep: { token: 't2', plain: 2 } })
  assert.deepEqual(changed, [
    { path: '/apiKey' },
    { path: '/deep/token' },
    { path: '/deep/plain', before: 1, after: 2 },
  ])
})

test('names a hundred parts and counts the others', async () => {
  const list = (from: number) => Array.from({ length: 130 }, (_, n) => n + from)
  const note = await noted(list(0), list(1))
  assert.deepEqual([note.changed.length, note.unnamed], [100, 30])
  assert.deepEqual(note.changed[0], { path: '/0', before: 0, after: 1 })
})

test('takes whatever another program has stored', async () => {
  const note = await noteEdit(new Redaction([]), { type: 'order' }, { before: 'not JSON', after: '{"id":1}' })
  assert.deepEqual(note.changed, [{ path: '' }])
  assert.deepEqual((await noted(null, null)).changed, [])
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  const flat = await noteEdit(new Redaction([]), { type: 'order' }, { before: deep, after: '[]' })
  assert.deepEqual(flat.changed, [{ path: '/0' }])
})

test('a hash tells its payload in any order of its properties, and is another in each entry', async () => {
  const { before, after } = await noted(payload, { ...payload, id: 2 })
  const { items, ...rest } = payload
  assert.equal(await isHashOf(before, { items, ...rest }), true)
  assert.equal(await isHashOf(after, payload), false)
  assert.equal(await isHashOf(before, { ...payload, pin: '1235' }), false)
  for (const text of ['', 'scrypt$1$8$1$aa$bb', before.slice(0, -1), `${before}=`]) {
    assert.equal(await isHashOf(text, payload), false, text)
  }
  const again = await noted(payload, payload)
  assert.equal(again.before, again.after)
  assert.notEqual(again.before, before)
})
