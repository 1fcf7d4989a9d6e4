import assert from 'node:assert/strict'
import type { TYPE_ROUTES } from '../../../src/http/contract/types.ts'
import { defineJob } from '../../../src/job/definition.ts'
import type { Cases } from '../../fixtures/admin.ts'

export const TYPE_CASES: Cases<keyof typeof TYPE_ROUTES> = {
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
