/**
 * What the compiler refuses, and that the run time refuses it too. `npm run types` compiles this file: an
 * `@ts-expect-error` over a line that compiles is an error.
 */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { type AnyJob, defineJob, type HandledJob, type Mill, open } from 'millrace'
import { drain, openForTest } from 'millrace/testing'
import type { Pool } from 'pg'
import * as v from 'valibot'
import { z } from 'zod'

const tidy = defineJob({ type: 'tidy', run: () => 'tidied' })
const greet = defineJob({ type: 'greet', payload: z.object({ name: z.string() }), run: ({ payload }) => payload.name })
const bare = defineJob({ type: 'bare', payload: z.object({ n: z.number() }) })

let mill: Mill

before(async () => {
  mill = await open('memory:')
})
after(() => mill.close())

/** Compiles the function and does not run it. */
const compiles = (_: () => unknown): void => {}

describe('enqueue', () => {
  test('a job without a payload schema is enqueued without a payload, and its handler gets null', async () => {
    await using test = await openForTest()
    const seen: unknown[] = []
    const job = defineJob({ type: 'seen', run: ({ payload }) => void seen.push(payload) })
    await test.mill.enqueue(job)
    await test.mill.enqueue(job, undefined, { priority: 1 })
    await test.mill.enqueueFlow({ one: { job }, two: { job, after: 'one' } })
    assert.equal((await drain(test.mill, [job])).complete, 4)
    assert.deepEqual(seen, [null, null, null, null])
  })

  test('such a job may still be given any payload', async () => {
    const { id } = await mill.enqueue(tidy, { folder: 'a' })
    assert.equal((await mill.job(id))?.payload, '{"folder":"a"}')
  })

  test('a job with a payload schema needs its payload', async () => {
    // @ts-expect-error the payload is missing
    await assert.rejects(mill.enqueue(greet), { code: 'ERR_PAYLOAD_NOT_JSON' })
    // @ts-expect-error the payload has another shape
    await assert.rejects(mill.enqueue(greet, { name: 1 }), { code: 'ERR_PAYLOAD_INVALID' })
    // @ts-expect-error a step needs its payload too
    await assert.rejects(mill.enqueueFlow({ one: { job: greet } }), { code: 'ERR_PAYLOAD_NOT_JSON' })
  })

  test('the type of the result follows the job', () => {
    compiles(async () => {
      const text: string = await mill.result(await mill.enqueue(greet, { name: 'Ann' }))
      // @ts-expect-error the handler returns a string
      const number: number = await mill.result(await mill.enqueue(greet, { name: 'Ann' }))
      return [text, number]
    })
  })
})

describe('work', () => {
  test('a definition without a handler is refused', async () => {
    // @ts-expect-error it has no handler
    await assert.rejects(mill.work([bare]), { code: 'ERR_HANDLER_MISSING' })
    // @ts-expect-error one of them has no handler
    await assert.rejects(mill.work([tidy, bare]), { code: 'ERR_HANDLER_MISSING' })
  })

  test('a definition with a handler is accepted, however it got it', async () => {
    const handled: HandledJob<{ n: number }, { n: number }, number> = bare.handledBy(({ payload }) => payload.n)
    const fails = defineJob({
      type: 'fails',
      run: () => {
        throw new Error('always')
      },
    })
    const list: readonly AnyJob[] = [handled, fails, tidy, greet]
    await (await mill.work([handled, fails, tidy, greet], { keeper: false })).stop()
    await (await mill.work(list, { keeper: false })).stop()
  })
})

describe('payload schemas', () => {
  test('a Date or a bigint in the input does not compile, and is refused when it is enqueued', async () => {
    // @ts-expect-error a Date is not JSON
    const dated = defineJob({ type: 'dated', payload: z.object({ at: z.date() }) })
    await assert.rejects(mill.enqueue(dated, { at: new Date(0) }), { code: 'ERR_PAYLOAD_INVALID' })
    // @ts-expect-error a bigint is not JSON
    const counted = defineJob({ type: 'counted', payload: z.bigint() })
    await assert.rejects(mill.enqueue(counted, 1n), { code: 'ERR_PAYLOAD_NOT_JSON' })
    compiles(() => [
      // @ts-expect-error an optional Date, deep inside
      defineJob({ type: 'deep', payload: z.object({ list: z.array(z.object({ at: z.date().optional() })) }) }),
      // @ts-expect-error a Map is not JSON
      defineJob({ type: 'map', payload: z.map(z.string(), z.number()) }),
      // @ts-expect-error the same with valibot
      defineJob({ type: 'valibot', payload: v.object({ at: v.date() }) }),
    ])
  })

  test('interfaces, optional fields, unions, recursive types and transformed schemas compile', async () => {
    interface Tree {
      readonly name: string
      readonly size?: number | undefined
      readonly children: readonly Tree[]
    }
    const tree: z.ZodType<Tree, Tree> = z.object({
      name: z.string(),
      size: z.number().optional(),
      get children() {
        return z.array(tree)
      },
    })
    const grow = defineJob({ type: 'tree', payload: tree, run: ({ payload }) => payload.children.length })
    compiles(() => [
      defineJob({
        type: 'date',
        payload: z.object({ at: z.coerce.date() }),
        run: ({ payload }) => payload.at.getTime(),
      }),
      defineJob({
        type: 'union',
        payload: z.union([z.literal('a'), z.object({ b: z.null() }), z.tuple([z.number()])]),
      }),
      defineJob({ type: 'any', payload: z.object({ any: z.any(), unknown: z.unknown(), json: z.json() }) }),
      defineJob({ type: 'record', payload: z.record(z.string(), z.array(z.boolean()).optional()) }),
      defineJob({ type: 'valibot', payload: v.object({ n: v.optional(v.number()) }), run: ({ payload }) => payload.n }),
    ])
    assert.equal((await mill.enqueue(grow, { name: 'a', children: [{ name: 'b', children: [] }] })).status, 'enqueued')
  })
})

describe('schedules', () => {
  test('a schedule whose payload does not fit the job is refused', async () => {
    // @ts-expect-error the job needs a payload
    const none = defineJob({ type: 'none', payload: z.object({ n: z.number() }), schedule: '0 3 * * *' })
    await assert.rejects(mill.keep({ jobs: [none] }), { code: 'ERR_PAYLOAD_INVALID' })
    const wrong = defineJob({
      type: 'wrong',
      payload: z.object({ n: z.number() }),
      // @ts-expect-error the payload has another shape
      schedule: { cron: '0 3 * * *', payload: { n: 'three' } },
    })
    await assert.rejects(mill.keep({ jobs: [wrong] }), { code: 'ERR_PAYLOAD_INVALID' })
  })

  test('a cron expression alone is enough for a job without a payload', async () => {
    const right = defineJob({
      type: 'right',
      payload: z.object({ n: z.number() }),
      schedule: { cron: '0 3 * * *', payload: { n: 3 } },
    })
    const nightly = defineJob({ type: 'nightly', schedule: '0 3 * * *' })
    const nullable = defineJob({ type: 'nullable', payload: z.null(), schedule: '0 3 * * *' })
    await (await mill.keep({ jobs: [right, nightly, nullable] })).stop()
  })
})

describe('options', () => {
  test('unknown options are refused', async () => {
    // @ts-expect-error not an option
    await assert.rejects(open('memory:', { nonsense: 1 }), { code: 'ERR_OPTION_INVALID' })
    // @ts-expect-error not an option
    await assert.rejects(mill.enqueue(tidy, null, { nonsense: 1 }), { code: 'ERR_OPTION_INVALID' })
    // @ts-expect-error not an option
    await assert.rejects(mill.work([tidy], { nonsense: 1 }), { code: 'ERR_OPTION_INVALID' })
    // @ts-expect-error not an option
    assert.throws(() => defineJob({ type: 'x', nonsense: 1 }), { code: 'ERR_OPTION_INVALID' })
  })

  test('open takes a URL, an engine or a database handle, and nothing else', async () => {
    // @ts-expect-error an empty object is no engine
    await assert.rejects(open({}), { code: 'ERR_UNSUPPORTED' })
    // @ts-expect-error there is no default engine
    await assert.rejects(open(), { code: 'ERR_ENGINE_URL' })
    const database = new DatabaseSync(':memory:')
    await (await open(database)).close()
    database.close()
    compiles((pool: Pool = assert.fail()) => open(pool))
  })
})

describe('await using', () => {
  test('a worker stops and a mill closes at the end of its block', async () => {
    const order: string[] = []
    const later = await open('memory:')
    {
      await using inner = await open('memory:')
      await using worker = await inner.work([tidy], { keeper: false })
      inner.events.on('worker.stopped', () => order.push('stopped'))
      void worker.stopped.then(() => order.push('over'))
    }
    assert.deepEqual(order, ['stopped', 'over'])
    await later[Symbol.asyncDispose]()
    await assert.rejects(later.enqueue(tidy), { code: 'ERR_CLOSED' })
  })
})
