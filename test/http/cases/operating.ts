import assert from 'node:assert/strict'
import { presenceOf } from '../../../src/engine/capability-checks.ts'
import type { TypeCounts } from '../../../src/engine/engine.ts'
import { createAdmin } from '../../../src/http/admin.ts'
import { ROUTES } from '../../../src/http/contract/index.ts'
import type { OPERATING_ROUTES } from '../../../src/http/contract/operating.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { until } from '../../cli/run.ts'
import { type Cases, clientOf, ORIGIN } from '../../fixtures/admin.ts'

const NOTHING: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }
/** Figures rest a hundred times as long as it took to count them, and a machine may stand still meanwhile. */
const COUNTED_MS = 150_000

export const OPERATING_CASES: Cases<keyof typeof OPERATING_ROUTES> = {
  async showSession({ ask, mill }) {
    const session = await ask('showSession', { headers: { 'x-millrace-who': 'ann' } })
    assert.deepEqual([session.who, session.role, session.tokens], ['ann', 'admin', false])
    assert.deepEqual(
      [session.engine, session.facets.inspection, session.facets.topics],
      [mill.engine.name, true, false],
    )
    assert.match(session.version, /^\d+\.\d+\.\d+/)
    assert.deepEqual(session.capabilities, JSON.parse(JSON.stringify(mill.engine.capabilities)))
  },
  async createLink({ mill, send }) {
    const { status, body } = await send('createLink', { body: {} })
    assert.deepEqual([status, body.code], [409, 'ERR_NO_TOKENS'])
    const token = 'operator-token-0123456789'
    const admin = createAdmin(mill, { page: null, tokens: [{ token, role: 'operator', who: 'ann' }] })
    const { ask } = clientOf((path, init) => admin.fetch(new Request(`${ORIGIN}${path}`, init)), ROUTES)
    const headers = { authorization: `Bearer ${token}` }
    const { path } = await ask('createLink', { headers, body: { forMs: 60_000 } })
    assert.match(path, /^\/#\/\?link=/)
    const { items } = await ask('listAudit', { headers, query: { action: 'link' } })
    assert.deepEqual(
      items.map(({ who }) => who),
      ['ann'],
    )
    await admin.close()
  },
  async showOverview({ ask, bury }) {
    await bury()
    // The figures may have been taken before.
    await until(async () => (await ask('showOverview', {})).counts.bill?.dead === 1, COUNTED_MS)
    const overview = await ask('showOverview', {})
    assert.deepEqual(overview.counts.bill, { ...NOTHING, dead: 1 })
    assert.equal(overview.health, 'unhealthy', 'no worker lives')
  },
  async showHistory({ ask, mill }) {
    const sinceMs = systemClock.nowMs() + 3_600_000
    const { stepMs, points } = await ask('showHistory', { query: { sinceMs } })
    assert.deepEqual([stepMs, points], [2_000, []])
    assert.equal((await ask('showHistory', { query: { sinceMs: 0 } })).stepMs, 2_000)
    await mill.pause('mail', { who: 'ann', reason: 'broken' })
    const hour = await ask('showHistory', { query: { range: '1h', type: 'mail' } })
    assert.deepEqual([hour.kept, hour.stepMs, hour.points.length], [true, 60_000, 60])
    assert.deepEqual(
      hour.annotations.map(({ kind, text, type }) => [kind, text, type]),
      [['pause', 'ann paused mail', 'mail']],
    )
  },
  async listQueues({ ask, mill }) {
    await mill.enqueue('bill', { n: 1 })
    await mill.pause('mail', { who: 'ann', reason: 'broken' })
    await until(async () => (await ask('listQueues', {})).queues[0]?.ready === 1, COUNTED_MS)
    const { queues } = await ask('listQueues', {})
    const [billed, mailed] = queues
    assert.deepEqual(billed, {
      ...NOTHING,
      type: 'bill',
      ready: 1,
      pause: null,
      workers: 0,
      slots: null,
      defined: true,
    })
    assert.deepEqual([mailed?.type, mailed?.pause?.who, mailed?.pause?.reason], ['mail', 'ann', 'broken'])
    assert.equal(mailed?.defined, false)
    if (mill.engine.capabilities.slots === 'refused') return
    const sync = defineJob({ type: 'sync', concurrency: { max: 5, by: 'tenant' }, run: () => null })
    await mill.work([sync])
    const told = async () => (await ask('listQueues', {})).queues.find(({ type }) => type === 'sync')
    await until(async () => (await told())?.workers === 1, COUNTED_MS)
    assert.deepEqual((await told())?.slots, { max: 5, by: 'tenant' })
  },
  async pauseQueue({ ask, mill }) {
    const pause = { params: { type: 'bill' }, body: { reason: 'too many' } }
    assert.deepEqual(await ask('pauseQueue', pause), { type: 'bill', paused: true, changed: true })
    assert.equal((await ask('pauseQueue', pause)).changed, false)
    assert.deepEqual(
      (await mill.paused()).map(({ type, who, reason }) => [type, who, reason]),
      [['bill', 'local', 'too many']],
    )
  },
  async resumeQueue({ ask, mill }) {
    await mill.pause('bill')
    const resumed = await ask('resumeQueue', { params: { type: 'bill' }, headers: { 'x-millrace-who': 'ann' } })
    assert.deepEqual(resumed, { type: 'bill', paused: false, changed: true })
    assert.deepEqual(await mill.paused(), [])
    const { items } = await ask('listAudit', { query: { action: 'resume' } })
    assert.deepEqual(
      items.map(({ who, type }) => [who, type]),
      [['ann', 'bill']],
    )
  },
  async listWorkers({ ask, mill }) {
    const atMs = systemClock.nowMs()
    const work = { host: 'h', pid: 1, startedAtMs: atMs - 9, concurrency: 4, running: 0, jobs: [] }
    const beat = { instance: 'h:1:a', status: 'RUNNING', atMs, lastJobAtMs: atMs - 7, lag: null } as const
    const beats = [{ ...beat, type: 'slow', stoppingSinceMs: null, work }]
    await presenceOf(mill.engine).beat(beats, 60_000)
    // Taken since it was last heard.
    const { id } = await mill.enqueue(defineJob({ type: 'slow' }), null)
    const consumer = await mill.engine.consume({ types: [{ type: 'slow', leaseMs: 60_000 }], worker: 'h:1:a' })
    await consumer.claim({ max: 1, waitMs: 10_000, signal: new AbortController().signal })
    const { workers } = await ask('listWorkers', {})
    const [one] = workers
    assert.deepEqual([workers.length, one?.id, one?.types, one?.condition], [1, 'h:1:a', ['slow'], 'working'])
    assert.deepEqual([one?.lastBeatAtMs, one?.lastJobAtMs, one?.concurrency], [atMs, atMs - 7, 4])
    assert.deepEqual([one?.runningCount, one?.running.map((job) => [job.id, job.type])], [1, [[id, 'slow']]])
    assert.ok((one?.running[0]?.sinceMs ?? 0) > atMs - 60_000)
  },
  async drainWorker({ ask, send, mill }) {
    const slow = defineJob({ type: 'slow', run: () => new Promise<void>((resolve) => gate.promise.then(resolve)) })
    const gate = Promise.withResolvers<void>()
    const worker = await mill.work([slow], { id: 'one' })
    const other = await mill.work([slow], { id: 'other' })
    const { id } = await mill.enqueue(slow, null)
    await until(() => worker.running + other.running === 1)
    const busy = worker.running === 1 ? worker : other
    const request = { params: { id: busy.id }, body: { reason: 'it leaks' } }
    assert.deepEqual(await ask('drainWorker', request), { id: busy.id, asked: true, changed: true })
    const stopping = async () => (await mill.workers()).find((one) => one.id === busy.id)?.stoppingSinceMs !== null
    await until(stopping, 2_000)
    assert.deepEqual(await mill.paused(), [], 'no type is paused')
    gate.resolve()
    await busy.stopped
    assert.equal((await mill.job(id))?.state, 'completed')
    assert.deepEqual(await mill.engine.records?.list('pause'), [], 'the request is gone')
    assert.deepEqual(
      (await mill.workers()).map((one) => [one.id, one.stoppingSinceMs]),
      [[busy === worker ? 'other' : 'one', null]],
    )
    const { items } = await ask('listAudit', { query: { action: 'worker-drain' } })
    assert.deepEqual(
      items.map(({ reason, subject }) => [reason, subject]),
      [['it leaks', busy.id]],
    )
    const gone = await send('drainWorker', request)
    assert.deepEqual([gone.status, gone.body.code], [404, 'ERR_RECORD_UNKNOWN'])
  },
  async listAlerts({ ask }) {
    assert.deepEqual(await ask('listAlerts', {}), { alerts: [] })
  },
  async listTopics({ send }) {
    const { status, body } = await send('listTopics')
    assert.deepEqual([status, body.code], [501, 'ERR_UNSUPPORTED'])
    assert.match(body.message ?? '', /the \w+ engine has no topics/)
  },
}
