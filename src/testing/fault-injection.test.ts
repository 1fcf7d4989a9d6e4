import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { EngineError } from '../errors.ts'
import { defineJob, MillraceError } from '../index.ts'
import { drain, settled } from './drain.ts'
import { Faults } from './fault-injection.ts'
import { openForTest } from './open-for-test.ts'

const isStorageFailed = (error: unknown) => error instanceof EngineError && error.code === 'ERR_STORAGE_FAILED'
const greet = defineJob({ type: 'greet', lease: '30s', run: () => 'hi' })

test('the nth enqueue fails, before or after it was stored', async () => {
  const faults = new Faults().fail('enqueue', { nth: 2 }).fail('enqueue', { nth: 3, when: 'after' })
  await using t = await openForTest({ faults })
  await t.mill.enqueue(greet, null)
  await assert.rejects(t.mill.enqueue(greet, null, { key: 'a' }), isStorageFailed)
  assert.equal((await t.mill.jobs()).length, 1)
  await assert.rejects(t.mill.enqueue(greet, null, { key: 'a' }), isStorageFailed)
  assert.equal((await t.mill.jobs()).length, 2)
  assert.equal((await t.mill.enqueue(greet, null, { key: 'a' })).status, 'duplicate')
  assert.equal(faults.calls('enqueue'), 4)
})

test('an error of the test is thrown as it is', async () => {
  const error = new EngineError('ERR_STORAGE_FULL', 'the disk is full')
  await using t = await openForTest({ faults: new Faults().fail('enqueue', { error }) })
  await assert.rejects(t.mill.enqueue(greet, null), (thrown) => thrown === error)
})

test('a settle that fails is tried again when the clock moves; the handler runs once', async () => {
  let runs = 0
  const counted = greet.handledBy(() => {
    runs += 1
    return 'hi'
  })
  const faults = new Faults().fail('settle', { nth: 1, times: 3 })
  await using t = await openForTest({ faults })
  await t.mill.work([counted], { poll: '1d', reap: false })
  const receipt = await t.mill.enqueue(counted, null)
  const job = settled(t.mill, receipt)
  await t.clock.advance('2s')
  assert.equal((await job).state, 'completed')
  assert.deepEqual([runs, faults.calls('settle')], [1, 4])
  assert.ok(t.events.some(({ name, event }) => name === 'worker.error' && event.during === 'settle'))
})

test('a delayed settle waits for the clock', async () => {
  await using t = await openForTest({ faults: new Faults().delay('settle', { by: '5s' }) })
  const receipt = await t.mill.enqueue(greet, null)
  const drained = drain(t.mill, [greet])
  await t.clock.advance('4s')
  assert.equal((await t.mill.job(receipt.id))?.state, 'in_progress')
  await t.clock.advance('1s')
  assert.equal((await drained).complete, 1)
})

for (const engine of ['memory', 'sqlite']) {
  test(`renewals that fail for longer than the lease cost the lease on ${engine}, and the handler hears of it`, async (c) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-faults-'))
    c.after(() => rm(folder, { recursive: true, force: true }))
    const faults = new Faults().fail('renew', { times: 1_000 })
    const url = engine === 'memory' ? 'memory:' : `sqlite:${join(folder, 'faults.db')}`
    await using t = await openForTest({ engine: url, faults })
    const long = defineJob({
      type: 'long',
      lease: '30s',
      timeout: '1h',
      run: ({ signal }) => t.clock.sleep(600_000, signal),
    })
    await t.mill.work([long], { poll: '1d', reap: false })
    const started = t.mill.events.next('job.started')
    const lost = t.mill.events.next('lease.lost')
    await t.mill.enqueue(long, null)
    await started
    await t.clock.advance('1m')
    assert.equal((await lost).reason, 'expired')
    assert.ok(faults.calls('renew') > 1)
    // A renewal thread of its own would reach the file without passing here.
    assert.equal(t.mill.engine.threadUrl, null)
  })
}

test('places out of range are refused', () => {
  const refused = (error: unknown) => error instanceof MillraceError && error.code === 'ERR_OPTION_INVALID'
  assert.throws(() => new Faults().fail('claim', { nth: 0 }), refused)
  assert.throws(() => new Faults().fail('claim', { times: 0 }), refused)
  assert.throws(() => new Faults().delay('claim', { by: -1 }), refused)
})
