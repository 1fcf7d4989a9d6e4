import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { fieldsOf, payloadOf } from './schema-form.ts'

const order = z.object({
  name: z.string().meta({ title: 'Name', description: 'As on the invoice' }),
  amount: z.number(),
  size: z.enum(['small', 'large']).default('large'),
  gift: z.boolean(),
  note: z.string().optional(),
  at: z.iso.datetime().optional(),
  tags: z.array(z.string()).optional(),
  address: z.object({ street: z.string(), floor: z.int().optional() }),
})

test('a schema becomes fields, those of objects within it by their path', () => {
  const fields = fieldsOf(z.toJSONSchema(order, { io: 'input' })) ?? []
  assert.deepEqual(
    fields.map(({ path, kind, isRequired }) => [path, kind, isRequired]),
    [
      ['name', 'text', true],
      ['amount', 'number', true],
      ['size', 'choice', false],
      ['gift', 'boolean', true],
      ['note', 'text', false],
      ['at', 'time', false],
      ['tags', 'list', false],
      ['address.street', 'text', true],
      ['address.floor', 'number', false],
    ],
  )
  assert.deepEqual([fields[0]?.label, fields[0]?.hint, fields[2]?.initial], ['Name', 'As on the invoice', 'large'])
})

test('the payload has what was given, and leaves out what is empty and optional', () => {
  const fields = fieldsOf(z.toJSONSchema(order, { io: 'input' })) ?? []
  const values = new Map([
    ['name', 'Ada'],
    ['amount', '2.5'],
    ['tags', 'a\nb\n'],
    ['at', '2026-01-01T00:00Z'],
    ['address.street', ''],
  ])
  assert.deepEqual(payloadOf(fields, values), {
    ...{ name: 'Ada', amount: 2.5, size: 'large', gift: false, tags: ['a', 'b'], at: '2026-01-01T00:00:00.000Z' },
    address: { street: '' },
  })
})

test('what no form can express is left to JSON', () => {
  const shapes = [z.string(), z.record(z.string(), z.number()), z.object({ a: z.union([z.string(), z.number()]) })]
  for (const schema of [...shapes, z.object({ 'a.b': z.string() }), z.object({})]) {
    assert.equal(fieldsOf(z.toJSONSchema(schema, { io: 'input' })), null)
  }
  assert.equal(fieldsOf(null), null)
})
