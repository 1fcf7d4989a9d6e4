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
  // @ts-expect-error a Date is not JSON; a caller without types can still do it
  const job = defineJob({ type: 'dated', payload: z.object({ at: z.date() }) })
  await assert.rejects(encodePayload(job, { at: new Date(0) }, MIB), refusedWith('ERR_PAYLOAD_INVALID', /at: /))
  const lists = defineJob({
    type: 'lists',
    // @ts-expect-error a Set is not JSON
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

class Money {
  readonly cents = 5
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level += 1) value = [value]
  return value
}

test('a payload of which JSON would lose something is refused, with the place', async () => {
  const cases: readonly (readonly [payload: unknown, message: RegExp])[] = [
    [{ list: [undefined] }, /has undefined at 'list\[0\]', which JSON cannot keep; pass plain objects/],
    [() => 1, /has a function, which/],
    [Symbol('s'), /has a symbol, which/],
    [10n, /has a BigInt, which/],
    [{ big: 10n }, /has a BigInt at 'big', which/],
    [{ a: { b: [1, Number.NaN] } }, /has NaN at 'a\.b\[1\]', which JSON cannot keep/],
    [{ ratio: Number.POSITIVE_INFINITY }, /has Infinity at 'ratio'/],
    [{ by: new Map([['a', 1]]) }, /has an object of the class Map at 'by'/],
    [[new Set([1])], /has an object of the class Set at '\[0\]'/],
    [{ error: new TypeError('x') }, /has an object of the class TypeError at 'error'/],
    [{ later: Promise.resolve(1) }, /has an object of the class Promise at 'later'/],
    [{ run: () => 1 }, /has a function at 'run'/],
    [{ price: new Money() }, /has an object of the class Money at 'price'/],
    [{ bytes: new Uint8Array(2) }, /has an object of the class Uint8Array at 'bytes'/],
    [[1, undefined], /has undefined at '\[1\]'/],
    // biome-ignore lint/suspicious/noSparseArray: what is tested
    [[1, , 2], /has a hole at '\[1\]'/],
    [{ at: new Date(Number.NaN) }, /has an invalid Date at 'at'/],
    [cycle(), /has more than 1000 levels, or a circle at 'self\.self\./],
    [nested(1_001), /has more than 1000 levels, or a circle/],
    [nested(100_000), /has more than 1000 levels, or a circle/],
  ]
  for (const [payload, message] of cases) {
    await assert.rejects(encodePayload(unchecked, payload, MIB), refusedWith('ERR_PAYLOAD_NOT_JSON', message))
  }
})

test('no payload is stored as null where the job has no schema, and refused where it has one', async () => {
  assert.equal(await encodePayload(unchecked, undefined, MIB), 'null')
  const named = defineJob({ type: 'named', payload: z.object({ name: z.string() }).optional() })
  const refused = refusedWith('ERR_PAYLOAD_NOT_JSON', /has undefined, which JSON cannot keep; pass plain objects/)
  await assert.rejects(encodePayload(named, undefined, MIB), refused)
})

test('a payload that JSON gives back is stored: dates and others by their toJSON, properties that are undefined left out', async () => {
  const cases: readonly (readonly [payload: unknown, text: string])[] = [
    [{ at: new Date(0), gone: undefined }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [{ link: new URL('http://127.0.0.1/a') }, '{"link":"http://127.0.0.1/a"}'],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    // As an object of another realm: what it inherits from is the last of its chain, and not ours.
    [Object.assign(Object.create(Object.create(null)), { a: [1, { b: null }] }), '{"a":[1,{"b":null}]}'],
    [{ toJSON: 'a name' }, '{"toJSON":"a name"}'],
    [nested(1_000), JSON.stringify(nested(1_000))],
  ]
  for (const [payload, text] of cases) assert.equal(await encodePayload(unchecked, payload, MIB), text)
})

test('a payload that is not JSON is refused', async () => {
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
  const lost = [Number.NaN, { by: new Map() }, [new Set()], { error: new Error('x') }, [Promise.resolve()]]
  for (const result of [10n, () => 1, cycle(), ...lost]) {
    assert.throws(() => encodeResult('t', result, MIB), refusedWith('ERR_RESULT_NOT_JSON', /the work is done/))
  }
  // The work was done: what JSON takes in its own way is no reason for a dead letter.
  assert.equal(encodeResult('t', { a: [undefined, new Money()], close: () => 1 }, MIB), '{"a":[null,{"cents":5}]}')
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
