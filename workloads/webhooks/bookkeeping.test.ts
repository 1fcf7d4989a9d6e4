import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { drain } from '../../src/testing/index.ts'
import type { HttpResponse } from './index.ts'
import { scene } from './rig.ts'

describe('what follows a delivery', () => {
  // X044
  test('bookkeeping that fails after a 200 is logged and counted, and sends nothing again', async () => {
    await using one = await scene()
    one.state.fails = true
    const { state, result } = await one.run()
    assert.equal(state, 'completed')
    assert.equal(Object(result).success, true)
    assert.equal(one.sent.length, 1)
    assert.equal(one.counted.filter((name) => name.endsWith('bookkeeping_failed')).length, 1)
    assert.equal(one.named('recordDelivery').length, 1)
    assert.ok(one.lines.some(({ text }) => text === 'A delivery could not be recorded'))
  })

  // X044
  test('a body that is not text is stored as text', async () => {
    await using one = await scene({ answers: [{ status: 200, data: { a: 1 } }] })
    await one.run()
    const [[record]] = one.named('recordDelivery') as [[Record<string, unknown>]]
    assert.equal(record.responseBody, '[object Object]')
    assert.equal(one.sent.length, 1)
  })

  test('bookkeeping that hangs does not use up the timeout of the job', async () => {
    await using one = await scene()
    let release = (): void => {}
    one.repo.recordDelivery = () => new Promise((resolve) => (release = () => resolve(undefined)))
    const { id } = await one.mill.enqueue(one.job, { webhookId: 'wh_1', payload: 1 })
    const drained = drain(one.mill, [one.job])
    while (!one.lines.some(({ text }) => text === 'Recording a delivery takes long')) await one.clock.advance('1s')
    await drained
    assert.equal((await one.mill.job(id))?.state, 'completed')
    assert.equal(one.sent.length, 1)
    release()
  })

  test('Retry-After puts off the next attempt after a 429 or 503, up to an hour', async () => {
    const ask = (value: string, status = 429): HttpResponse => ({ status, headers: { 'retry-after': value } })
    const date = 'Thu, 01 Jan 2026 00:10:00 GMT'
    const cases: readonly (readonly [HttpResponse, number])[] = [
      [ask('120'), 120_000],
      [ask('120', 503), 120_000],
      [ask(date), 600_000],
      [ask('999999'), 3_600_000],
      [ask('Thu, 01 Jan 2015 00:00:00 GMT'), 1_000],
      [ask('0'), 1_000],
      [ask('soon'), 1_000],
      [ask('-5'), 1_000],
      [ask('120', 500), 1_000],
    ]
    for (const [answer, delayMs] of cases) {
      await using one = await scene({ answers: [answer] })
      const { id } = await one.mill.enqueue(one.job, { webhookId: 'wh_1', payload: 1 }, { attempts: 2 })
      await drain(one.mill, [one.job])
      const view = await one.mill.job(id)
      const waitMs = (view?.runAtMs ?? 0) - one.clock.nowMs()
      assert.deepEqual([view?.state, waitMs], ['queued', delayMs], JSON.stringify(answer))
    }
  })

  test('a Retry-After that is shorter than the usual wait does not use up the attempts sooner', async () => {
    await using one = await scene({ answers: [{ status: 503, headers: { 'retry-after': '1' } }] })
    const { id } = await one.mill.enqueue(one.job, { webhookId: 'wh_1', payload: 1 })
    const waits: number[] = []
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await drain(one.mill, [one.job])
      const waitMs = ((await one.mill.job(id))?.runAtMs ?? 0) - one.clock.nowMs()
      waits.push(waitMs)
      await one.clock.advance(waitMs)
    }
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000])
  })
})
