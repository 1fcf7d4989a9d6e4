import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { z } from 'zod'
import { type ErrorCode, MillraceError, OptionError, PayloadError, ResultError } from '../errors.ts'
import { defineJob } from './definition.ts'
import { decodePayload, encodePayload, encodeProgress, encodeResult } from './payload.ts'

const MIB = 1_048_576
const byZod = defineJob({ type: 'by-zod', payload: z.object({ id: z.string(), count: z.number().default(1) }) })
const byValibot = defineJob({
  type: 'by-valibot',
  payload: v.object({ id: v.string(), count: v.optional(v.number(), 1) }),
})
const unchecked = defineJob({ type: 'unchecked' })

const refusedWith = (code: ErrorCode, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof MillraceError, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, message)
  return true
}

/** Makes an object whose JSON would be endless. */
function cycle(): object {
  const value: Record<string, unknown> = {}
  value.self = value
  return value
}

for (const definition of [byZod, byValibot]) {
  // A37 B27 B52
  test(`${definition.type}: a payload that fits is stored as JSON and reads back with the schema's defaults`, async () => {
    const text = await encodePayload(definition, { id: 'a' }, MIB)
    assert.equal(text, '{"id":"a"}')
    assert.deepEqual(await decodePayload(definition, text, 1), { id: 'a', count: 1 })
  })

  // B189
  test(`${definition.type}: a payload that does not fit is refused at both ends, naming the field`, async () => {
    const refused = refusedWith('ERR_PAYLOAD_INVALID', /^Invalid payload: 'by-\w+': id: /)
    await assert.rejects(encodePayload(definition, { id: 5 }, MIB), refused)
    await assert.rejects(encodePayload(definition, {}, MIB), refused)
    await assert.rejects(decodePayload(definition, '{"id":5}', 1), refused)
    await assert.rejects(decodePayload(definition, 'null', 1), refusedWith('ERR_PAYLOAD_INVALID', /^Invalid payload: /))
  })
}

test('a schema that answers later, and one that transforms, are both applied once per end', async () => {
  const job = defineJob({
    type: 'later',
    payload: z.object({ n: z.string().transform(Number) }).refine(async ({ n }) => Promise.resolve(n > 0), 'too small'),
  })
  const text = await encodePayload(job, { n: '7' }, MIB)
  assert.equal(text, '{"n":"7"}')
  assert.deepEqual(await decodePayload(job, text, 1), { n: 7 })
  await assert.rejects(encodePayload(job, { n: '0' }, MIB), refusedWith('ERR_PAYLOAD_INVALID', /too small/))
})

test('what is validated is what is stored: a value that JSON changes is refused at enqueue, not dead at its start', async () => {
  const job = defineJob({ type: 'dated', payload: z.object({ at: z.date() }) })
  await assert.rejects(encodePayload(job, { at: new Date(0) }, MIB), refusedWith('ERR_PAYLOAD_INVALID', /at: /))
  const lists = defineJob({
    type: 'lists',
    payload: z.object({ list: z.array(z.any()).min(1), tags: z.set(z.string()) }),
  })
  await assert.rejects(encodePayload(lists, { list: [1], tags: new Set(['a']) }, MIB), PayloadError)
})

test('a schema that throws is a payload that does not fit, with the cause kept', async () => {
  const job = defineJob({
    type: 'thrower',
    payload: z.any().refine((value) => value.deep.er > 0),
  })
  await assert.rejects(encodePayload(job, {}, MIB), (error) => {
    assert.ok(error instanceof PayloadError)
    assert.ok(error.cause instanceof TypeError)
    return error.code === 'ERR_PAYLOAD_INVALID'
  })
})

test('the message of a hopeless payload stays short', async () => {
  const job = defineJob({ type: 'many', payload: z.array(z.string()) })
  await assert.rejects(
    encodePayload(
      job,
      Array.from({ length: 10_000 }, () => 1),
      MIB,
    ),
    (error) => {
      assert.ok(error instanceof PayloadError)
      assert.ok(error.message.length < 1_000, `${error.message.length} characters`)
      assert.match(error.message, /and 9995 more$/)
      return true
    },
  )
})

test('a payload that is not JSON is refused', async () => {
  for (const payload of [undefined, () => 1, Symbol('s'), 10n, { big: 10n }, cycle()]) {
    const refused = refusedWith('ERR_PAYLOAD_NOT_JSON', /payload of 'unchecked' is not JSON; pass plain objects/)
    await assert.rejects(encodePayload(unchecked, payload, MIB), refused)
  }
  const thrower = {
    toJSON: () => {
      throw new Error('no')
    },
  }
  await assert.rejects(encodePayload(unchecked, thrower, MIB), PayloadError)
  await assert.rejects(
    decodePayload(unchecked, '{"half":', 1),
    refusedWith('ERR_PAYLOAD_NOT_JSON', /^Invalid payload: the stored text of 'unchecked' is not JSON/),
  )
})

test('null, text, numbers and lists are payloads too', async () => {
  for (const payload of [null, 'text', 0, false, [], {}]) {
    const text = await encodePayload(unchecked, payload, MIB)
    assert.deepEqual(await decodePayload(unchecked, text, 1), payload)
  }
})

test('the size limit counts bytes, not characters, and admits exactly the limit', async () => {
  // Two quotes and four bytes for each sign.
  assert.equal(await encodePayload(unchecked, '🜁🜁', 10), '"🜁🜁"')
  await assert.rejects(
    encodePayload(unchecked, '🜁🜁', 9),
    refusedWith('ERR_PAYLOAD_TOO_LARGE', /has 10 bytes, above the limit of 9;.*pass a reference/),
  )
})

test('an older payload is upcast before it is validated', async () => {
  const job = defineJob({
    type: 'renamed',
    version: 3,
    payload: z.object({ invoiceId: z.string() }),
    upcast: (old, from) => {
      assert.ok(typeof old === 'object' && old !== null)
      return { invoiceId: `${Reflect.get(old, 'id')} from ${from}` }
    },
  })
  assert.deepEqual(await decodePayload(job, '{"id":"7"}', 1), { invoiceId: '7 from 1' })
  assert.deepEqual(await decodePayload(job, '{"id":"7"}', 2), { invoiceId: '7 from 2' })
  assert.deepEqual(await decodePayload(job, '{"invoiceId":"7"}', 3), { invoiceId: '7' })
})

test('an older payload without an upcast must fit as it is', async () => {
  const job = defineJob({ type: 'same', version: 2, payload: z.object({ id: z.string() }) })
  assert.deepEqual(await decodePayload(job, '{"id":"7"}', 1), { id: '7' })
  await assert.rejects(decodePayload(job, '{"name":"7"}', 1), PayloadError)
})

test('an upcast that throws is a payload that does not fit; a newer version is for a newer worker', async () => {
  const job = defineJob({
    type: 'broken-upcast',
    version: 2,
    upcast: () => {
      throw new TypeError('no such field')
    },
  })
  await assert.rejects(
    decodePayload(job, '{}', 1),
    refusedWith('ERR_PAYLOAD_INVALID', /could not be upcast from version 1/),
  )
  await assert.rejects(
    decodePayload(job, '{}', 3),
    refusedWith('ERR_PAYLOAD_VERSION', /has version 3, this worker knows 2; deploy the newer worker/),
  )
})

// B36
test('a result is JSON text within the limit; nothing becomes null', () => {
  assert.equal(encodeResult('t', undefined, 10), 'null')
  assert.equal(encodeResult('t', { a: 1 }, 10), '{"a":1}')
  for (const result of [10n, () => 1, cycle()]) {
    assert.throws(() => encodeResult('t', result, MIB), refusedWith('ERR_RESULT_NOT_JSON', /the work was done/))
  }
  assert.throws(() => encodeResult('t', 'x'.repeat(10), 11), refusedWith('ERR_RESULT_TOO_LARGE', /more than 11 bytes/))
  assert.throws(() => encodeResult('t', 10n, MIB), ResultError)
})

// A68
test('progress is any JSON value within the limit', () => {
  assert.equal(encodeProgress('t', 50, 10), '50')
  assert.equal(encodeProgress('t', { percent: 10 }, 20), '{"percent":10}')
  for (const progress of [undefined, 10n, cycle(), 'x'.repeat(30)]) {
    assert.throws(() => encodeProgress('t', progress, 20), OptionError)
  }
})
