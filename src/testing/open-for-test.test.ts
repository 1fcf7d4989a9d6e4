import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, MillraceError } from '../index.ts'
import { drain, settled } from './drain.ts'
import { openForTest, seededRandom } from './open-for-test.ts'

const fails = defineJob({
  type: 'fails',
  attempts: 2,
  backoff: { kind: 'fixed', delay: '10s', jitter: 'full' },
  run: ({ log }) => {
    log.warn('about to fail', { why: 'told to' })
    throw new Error('no')
  },
})

test('lines and events are kept in order, those of handlers too', async () => {
  await using t = await openForTest()
  await t.mill.enqueue(fails, null)
  await drain(t.mill, [fails])
  const names = t.events.map(({ name }) => name)
  assert.deepEqual(names, [
    'job.enqueued',
    'worker.started',
    'job.claimed',
    'job.started',
    'job.settled',
    'worker.stopping',
    'worker.stopped',
  ])
  const line = t.lines.find(({ text }) => text === 'about to fail')
  assert.equal(line?.level, 'warn')
  assert.equal(line?.fields.why, 'told to')
})

test('the same seed gives the same jitter, another one another', async () => {
  const delayWith = async (seed: number): Promise<number> => {
    await using t = await openForTest({ seed, startMs: 0 })
    const { id } = await t.mill.enqueue(fails, null)
    await drain(t.mill, [fails])
    return (await t.mill.job(id))?.runAtMs ?? -1
  }
  const delays = [await delayWith(1), await delayWith(1), await delayWith(2)]
  assert.equal(delays[0], delays[1])
  assert.notEqual(delays[0], delays[2])
})

test('seeded numbers fill the range from 0 up to 1', () => {
  const random = seededRandom(42)
  const numbers = Array.from({ length: 10_000 }, random)
  assert.ok(numbers.every((number) => number >= 0 && number < 1))
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  assert.ok(Math.abs(mean - 0.5) < 0.02, `mean ${mean}`)
  assert.equal(new Set(numbers).size, numbers.length)
})

test('a job is waited for until it has ended, and a failure is an answer', async () => {
  await using t = await openForTest()
  const receipt = await t.mill.enqueue(fails, null, { attempts: 1 })
  const [job] = await Promise.all([settled(t.mill, receipt), drain(t.mill, [fails])])
  assert.equal(job.state, 'dead_letter')
  assert.equal(job.error?.message, 'no')
  assert.equal((await settled(t.mill, receipt.id)).id, receipt.id)
})

test('waiting gives up in real time and says how the job stands', async () => {
  await using t = await openForTest()
  const receipt = await t.mill.enqueue(fails, null)
  await assert.rejects(settled(t.mill, receipt, { timeout: 20 }), (error: unknown) => {
    assert.ok(error instanceof MillraceError && error.code === 'ERR_WAIT_TIMEOUT')
    assert.match(error.message, /queued, starts so far: 0; .* within 20 ms/)
    return true
  })
  await assert.rejects(
    settled(t.mill, 'nobody'),
    (error) => error instanceof MillraceError && error.code === 'ERR_JOB_UNKNOWN',
  )
})

test('closing needs no real time, even when a handler never ends', async () => {
  const t = await openForTest()
  const stuck = defineJob({ type: 'stuck', timeout: '1d', run: () => new Promise(() => {}) })
  await t.mill.work([stuck], { poll: '1d', reap: false })
  const started = t.mill.events.next('job.started')
  await t.mill.enqueue(stuck, null)
  await started
  await t.close()
  assert.ok(t.events.some(({ name }) => name === 'worker.overdue'))
})
