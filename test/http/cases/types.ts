import assert from 'node:assert/strict'
import { z } from 'zod'
import type { TYPE_ROUTES } from '../../../src/http/contract/types.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { until } from '../../cli/run.ts'
import type { Cases, Stage } from '../../fixtures/admin.ts'

const numbered = z.object({ n: z.number().meta({ title: 'Number' }) })

/** Resolves when a bulk operation is over. */
async function ended({ ask }: Pick<Stage, 'ask'>, id: string) {
  await until(async () => (await ask('showOperation', { params: { id } })).status !== 'running')
  return ask('showOperation', { params: { id } })
}

export const TYPE_CASES: Cases<keyof typeof TYPE_ROUTES> = {
  async showType({ ask, mill }) {
    const params = { type: 'count' }
    const nothing = await ask('showType', { params })
    assert.deepEqual([nothing.ready, nothing.definition, nothing.override, nothing.oldest], [0, null, null, null])
    const count = defineJob({ type: 'count', payload: numbered, attempts: 7, concurrency: 3, run: () => null })
    await mill.limits.set('count', { concurrency: 1 }, { who: 'ann', reason: 'slow' })
    await mill.pause('count')
    const { id } = await mill.enqueue(count, { n: 1 })
    // Its code is in the worker alone: this process knows what the worker has published.
    const worker = await mill.work([count])
    await until(async () => (await ask('showType', { params })).definition !== null)
    const shown = await ask('showType', { params })
    assert.deepEqual([shown.defined, shown.workers, shown.pause?.who, shown.oldest?.id], [false, 1, 'api', id])
    assert.deepEqual([shown.definition?.attempts, shown.definition?.concurrency, shown.definition?.priority], [7, 3, 5])
    assert.deepEqual([shown.override?.concurrency, shown.override?.who], [1, 'ann'])
    assert.deepEqual(shown.definition?.schema?.properties, { n: { type: 'number', title: 'Number' } })
    await mill.resume('count')
    await mill.result(id)
    await worker.stop()
    const { recent } = await ask('showType', { params })
    assert.deepEqual([recent?.jobs, recent?.attempts], [1, 1])
    assert.ok((recent?.waiting?.p99 ?? -1) >= 0 && (recent?.running?.p50 ?? -1) >= 0)
    const own = await ask('showType', { params: { type: 'bill' } })
    assert.equal(own.defined, true)
    assert.equal(own.definition?.version, 1)
  },
  async drainType(stage) {
    const { ask, send, mill } = stage
    const [many, other] = [defineJob({ type: 'many' }), defineJob({ type: 'other' })]
    const ids = (
      await mill.enqueueMany(
        many,
        Array.from({ length: 130 }, () => null),
      )
    ).map(({ id }) => id)
    await mill.enqueue(many, null, { delay: '1h' })
    await mill.enqueue(other, null)
    const params = { type: 'many' }
    const wrong = await send('drainType', { params, body: { reason: 'a mistake', confirm: 'other' } })
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'ERR_OPTION_INVALID'])
    const { operation } = await ask('drainType', { params, body: { reason: 'a mistake', confirm: 'many' } })
    const { status, progress } = await ended(stage, operation.id)
    assert.deepEqual([status, progress.done, progress.total], ['done', 131, 131])
    const counts = await mill.counts()
    assert.deepEqual([counts.many?.ready ?? 0, counts.many?.delayed ?? 0, counts.other?.ready], [0, 0, 1])
    assert.equal((await mill.job(ids[0] ?? ''))?.state, 'cancelled')
    const { items } = await ask('listAudit', { query: { action: 'type-drain' } })
    assert.deepEqual(
      items.map(({ who, reason, type, before }) => [who, reason, type, before.ready, before.delayed]),
      [['local', 'a mistake', 'many', 130, 1]],
    )
  },
  async obliterateType(stage) {
    const { ask, mill, bury } = stage
    const id = await bury()
    const done = defineJob({ type: 'bill', run: () => null })
    const running = await mill.enqueue(done, null)
    const consumer = await mill.engine.consume({ types: [{ type: 'bill', leaseMs: 60_000 }], worker: 'w' })
    await consumer.claim({ max: 1, waitMs: 10_000, signal: new AbortController().signal })
    await mill.enqueue(done, null)
    const { operation } = await ask('obliterateType', {
      params: { type: 'bill' },
      body: { reason: 'the service is gone', confirm: 'bill' },
    })
    const { status, progress } = await ended(stage, operation.id)
    assert.deepEqual([status, progress.done], ['done', 3])
    assert.deepEqual(await Promise.all([id, running.id].map((one) => mill.job(one))), [null, null])
    assert.equal((await mill.counts()).bill, undefined)
    const { items } = await ask('listAudit', { query: { action: 'type-obliterate' } })
    assert.deepEqual(
      items.map(({ reason, type, before }) => [reason, type, before.dead, before.inProgress]),
      [['the service is gone', 'bill', 1, 1]],
    )
    await consumer.close()
  },
  async listLimits({ ask, mill }) {
    assert.deepEqual(await ask('listLimits', {}), { limits: [] })
    await mill.limits.set('bill', { concurrency: 2, limit: null }, { who: 'ann', reason: 'slow bank' })
    const { limits } = await ask('listLimits', {})
    assert.deepEqual(
      limits.map(({ sinceMs: _, ...rest }) => rest),
      [{ type: 'bill', concurrency: 2, limit: null, who: 'ann', reason: 'slow bank' }],
    )
  },
  async setLimits({ ask, send, mill }) {
    const worker = await mill.work([defineJob({ type: 'slow', run: () => null })])
    const heeded = mill.events.next('worker.limited')
    const request = {
      params: { type: 'slow' },
      body: { concurrency: 3, limit: { max: 10, perMs: 1_000 }, reason: 'slow bank' },
    }
    const set = { concurrency: 3, limit: { max: 10, perMs: 1_000 } }
    assert.deepEqual(await ask('setLimits', request), { type: 'slow', before: {}, after: set })
    assert.deepEqual((await heeded).types, [{ type: 'slow', ...set }])
    await worker.stop()
    const { items } = await ask('listAudit', { query: { action: 'limits-change' } })
    assert.deepEqual(
      items.map(({ who, reason, type, before, after }) => [who, reason, type, before, after]),
      [['local', 'slow bank', 'slow', {}, set]],
    )
    for (const body of [{}, { concurrency: 0 }, { limit: { max: 1, perMs: 0 } }, { concurrency: 1, rate: 1 }]) {
      const { status } = await send('setLimits', { params: { type: 'slow' }, body })
      assert.equal(status, 400, JSON.stringify(body))
    }
  },
  async resetLimits({ ask, mill }) {
    await mill.limits.set('bill', { concurrency: 2 })
    const request = { params: { type: 'bill' }, body: { reason: 'fast again' } }
    assert.deepEqual(await ask('resetLimits', request), { type: 'bill', changed: true })
    assert.deepEqual(await ask('resetLimits', request), { type: 'bill', changed: false })
    const { items } = await ask('listAudit', { query: { action: 'limits-reset' } })
    assert.deepEqual(
      items.map(({ reason, type, before }) => [reason, type, before]),
      [['fast again', 'bill', { concurrency: 2 }]],
    )
  },
}
