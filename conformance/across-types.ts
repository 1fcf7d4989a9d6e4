import assert from 'node:assert/strict'
import { UnsupportedError } from '../src/errors.ts'
import { defineJob } from '../src/job/definition.ts'
import type { Excuse } from './case.ts'

/** Steps over several types, and one order for them. */
export const acrossTypes: Excuse = {
  excuse: ({ capabilities: { scope } }) => (scope === 'store' ? null : 'keeps each type by itself'),
  refusal: async (stage) => {
    const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
    const mill = await stage.mill()
    const [first, second] = [a, b].map((type) => defineJob({ type, backoff: { kind: 'fixed', delay: 0 } }))
    if (first === undefined || second === undefined) return
    const flow = { first: { job: first, payload: 1 }, second: { job: second, payload: 2, after: 'first' } } as const
    await assert.rejects(mill.enqueueFlow(flow), (error) => error instanceof UnsupportedError)
    await stage.expectCounts({}, a)
    const { id } = await stage.put({ type: a })
    if (stage.engine.capabilities.dependencies) {
      await assert.rejects(
        mill.enqueue(second, 2, { after: id }),
        (error) => error instanceof UnsupportedError && error.engine === stage.engine.name && error.message.includes(a),
      )
    }
    await stage.expectCounts({}, b)
    await stage.expectCounts({ ready: 1 }, a)
  },
}
