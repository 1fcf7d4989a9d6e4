import assert from 'node:assert/strict'
import type { JOB_ROUTES } from '../../../src/http/contract/jobs.ts'
import type { Cases } from '../../fixtures/admin.ts'

export const JOB_CASES: Cases<keyof typeof JOB_ROUTES> = {
  async listJobs({ ask, mill }) {
    for (let n = 0; n < 5; n += 1) await mill.enqueue('bill', { n }, { key: `order-${n}` })
    const first = await ask('listJobs', { query: { limit: 2, type: 'bill', state: 'queued' } })
    const second = await ask('listJobs', { query: { limit: 2, cursor: first.next ?? '' } })
    const third = await ask('listJobs', { query: { limit: 2, cursor: second.next ?? '' } })
    const keys = [first, second, third].map(({ items }) => items.map(({ key }) => key))
    assert.deepEqual(keys, [['order-4', 'order-3'], ['order-2', 'order-1'], ['order-0']])
    assert.equal(third.next, null)
    assert.deepEqual((await ask('listJobs', { query: { type: 'mail' } })).items, [])
    const [newest] = first.items
    await mill.cancel(newest?.id ?? '', { who: 'ann', reason: 'test' })
    const { items } = await ask('listJobs', { query: { state: 'cancelled' } })
    assert.deepEqual(
      items.map(({ id, state }) => [id, state]),
      [[newest?.id, 'cancelled']],
    )
    assert.deepEqual((await ask('listJobs', { query: { state: 'dead_letter' } })).items, [])
  },
  async showJob({ ask, send, mill }) {
    const first = await mill.enqueue('bill', { n: 1, pin: '1234' })
    const { id } = await mill.enqueue('bill', { n: 2 }, { after: first })
    const shown = await ask('showJob', { params: { id } })
    assert.deepEqual([shown.job.id, shown.job.payload, shown.job.after?.ids], [id, { n: 2 }, [first.id]])
    assert.deepEqual(
      shown.history.map(({ name }) => name),
      ['enqueued'],
    )
    assert.deepEqual(
      shown.graph.map((node) => [node.id, node.state]),
      [[first.id, 'queued']],
    )
    assert.equal(shown.explanation.because, 'waits-for-jobs')
    const { job } = await ask('showJob', { params: { id: first.id } })
    assert.deepEqual(job.payload, { n: 1, pin: '[redacted]' })
    const none = await send('showJob', { params: { id: 'none/../x' } })
    assert.deepEqual([none.status, none.body.code], [404, 'ERR_JOB_UNKNOWN'])
  },
  async showJobFlow({ ask, send, mill }) {
    const first = await mill.enqueue('bill', { n: 1 })
    const { id } = await mill.enqueue('bill', { n: 2 }, { after: first })
    const last = await mill.enqueue('bill', { n: 3 }, { after: id })
    const { nodes, cut } = await ask('showJobFlow', { params: { id } })
    assert.deepEqual(
      nodes.map((node) => [node.id, node.state, node.after]),
      [
        [id, 'queued', [first.id]],
        [first.id, 'queued', []],
        [last.id, 'queued', [id]],
      ],
    )
    assert.equal(cut, false)
    assert.equal((await send('showJobFlow', { params: { id: 'none' } })).status, 404)
  },
  async showJobLogs({ ask, send, mill }) {
    const { id } = await mill.enqueue('bill', { n: 1 })
    const line = (message: string): string =>
      JSON.stringify({ at: 5, level: 'warn', attempt: 1, worker: 'w', message, fields: { n: 1 } })
    const said = [{ job: { id, type: 'bill' }, skipped: 2, lines: [line('one'), line('two')] }]
    await mill.engine.logs?.append(said, { lines: 200, bytes: 65_536 })
    const log = await ask('showJobLogs', { params: { id }, query: {} })
    assert.deepEqual(
      [log.dropped, log.lines.map(({ seq, message }) => [seq, message])],
      [
        2,
        [
          [3, 'one'],
          [4, 'two'],
        ],
      ],
    )
    const newer = await ask('showJobLogs', { params: { id }, query: { after: 3 } })
    assert.deepEqual(newer.lines, [
      { seq: 4, atMs: 5, level: 'warn', attempt: 1, worker: 'w', message: 'two', fields: { n: 1 } },
    ])
    assert.equal((await send('showJobLogs', { params: { id: 'none' } })).status, 404)
  },
  async explainJob({ ask, mill }) {
    const { id } = await mill.enqueue('bill', { n: 1 }, { delay: '1h' })
    const explanation = await ask('explainJob', { params: { id } })
    assert.deepEqual([explanation.because, typeof explanation.untilMs], ['delayed', 'number'])
  },
  async enqueueJob({ ask, send, mill }) {
    const body = {
      type: 'bill',
      payload: { n: 1 },
      name: 'invoice',
      priority: 2,
      delay: '1h',
      key: 'a',
      tenant: { orgId: 'o' },
    } as const
    const { id, status } = await ask('enqueueJob', { body: { ...body, reason: 'by hand' } })
    const job = await mill.job(id)
    assert.deepEqual([status, job?.priority, job?.key, job?.tenant], ['enqueued', 2, 'a', { orgId: 'o' }])
    assert.equal((job?.runAtMs ?? 0) - (job?.createdAtMs ?? 0), 3_600_000)
    assert.deepEqual(job?.options, { name: 'invoice' })
    assert.deepEqual(await ask('enqueueJob', { body }), { id, status: 'duplicate' })
    const wrong = await send('enqueueJob', { body: { type: 'bill', payload: { n: 'one' } } })
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'ERR_PAYLOAD_INVALID'])
    assert.equal((await ask('enqueueJob', { body: { type: 'unknown-here', payload: [1] } })).status, 'enqueued')
    const { items } = await ask('listAudit', { query: { action: 'enqueue', jobId: id } })
    assert.equal(items.at(-1)?.reason, 'by hand')
  },
  async cancelJob({ ask, send, mill }) {
    const { id } = await mill.enqueue('bill', { n: 1 })
    const cancel = { params: { id }, body: { reason: 'not needed' }, headers: { 'x-millrace-who': 'ann' } }
    assert.deepEqual(await ask('cancelJob', cancel), { id, cancelled: true })
    assert.equal((await mill.job(id))?.state, 'cancelled')
    const again = await send('cancelJob', cancel)
    assert.deepEqual([again.status, again.body.code], [409, 'ERR_STATE_TRANSITION'])
    assert.equal((await send('cancelJob', { ...cancel, params: { id: 'none' } })).status, 404)
    const { items } = await ask('listAudit', { query: { jobId: id } })
    assert.deepEqual(
      items.map(({ action, who, reason }) => [action, who, reason]),
      [['cancel', 'ann', 'not needed']],
    )
  },
  async retryJob({ ask, send, mill, bury }) {
    const id = await bury()
    assert.deepEqual(await ask('retryJob', { params: { id } }), { id, replayed: true })
    assert.equal((await mill.job(id))?.state, 'queued')
    const again = await send('retryJob', { params: { id }, body: {} })
    assert.deepEqual([again.status, again.body.code], [409, 'ERR_STATE_TRANSITION'])
    assert.equal((await send('retryJob', { params: { id: 'none' }, body: {} })).status, 404)
  },
  async runJobAgain({ ask, send, mill, bury }) {
    const options = { key: 'a', priority: 2, attempts: 4, name: 'invoice', tenant: { orgId: 'o' } } as const
    const { id } = await mill.enqueue('bill', { n: 1, pin: '1234' }, options)
    const early = await send('runJobAgain', { params: { id }, body: {} })
    assert.deepEqual([early.status, early.body.code], [409, 'ERR_STATE_TRANSITION'])
    await mill.cancel(id, { who: 'ann', reason: 'test' })
    const again = await ask('runJobAgain', { params: { id }, body: { reason: 'a mistake' } })
    assert.notEqual(again.id, id)
    const job = await mill.job(again.id)
    assert.deepEqual(
      [job?.state, job?.payload, job?.priority, job?.attempts, job?.options?.name, job?.tenant, job?.key],
      ['queued', '{"n":1,"pin":"1234"}', 2, 4, 'invoice', { orgId: 'o' }, null],
    )
    const { items } = await ask('listAudit', { query: { action: 'enqueue', jobId: again.id } })
    assert.deepEqual([items[0]?.reason, items[0]?.before.of], ['a mistake', id])
    const dead = await send('runJobAgain', { params: { id: await bury() }, body: {} })
    assert.match(dead.body.message ?? '', /replay it instead/)
  },
}
