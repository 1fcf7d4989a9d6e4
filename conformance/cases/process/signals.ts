import assert from 'node:assert/strict'
import { defineJob } from '../../../src/job/definition.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, inspection, need, reaping, survival } from '../../needs.ts'
import { eventually, LASTING_LEASE_MS, onProcesses } from '../../process/child.ts'
import { type Deed, nextTypeOf } from '../../process/protocol.ts'

const waits: Deed = 'wait-for-go'
const heeds: Deed = 'heed-signal'
const handsOn: Deed = 'enqueue-after-go'

export const signals: CaseFile = {
  level: 'process',
  concept: 'Processes that are stopped, paused and cancelled',
  cases: [
    {
      // A05 B132 B133 B137
      name: 'SIGTERM drains the worker, gives back what does not end, and the process exits 0 with nothing leased',
      guarantees: ['I8', 'I2'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(
          stage,
          async ({ mill, start }) => {
            const worker = start('worker')
            await worker.heard('ready')
            const job = defineJob({ type: stage.type })
            const [ending, endless] = [await mill.enqueue(job, waits), await mill.enqueue(job, heeds)]
            await eventually(() => worker.all('started').length === 2, 'both starts')
            worker.signal('SIGTERM')
            worker.go()
            assert.equal(await worker.exited(), 0)
            assert.deepEqual(worker.all('aborted'), [{ event: 'aborted', id: endless.id, code: 'ERR_STOPPING' }])
            assert.equal((await mill.job(ending.id))?.state, 'completed')
            const given = await mill.job(endless.id)
            assert.deepEqual([given?.state, given?.attempt, given?.leaseOwner], ['queued', 0, null])
            assert.equal((await mill.counts())[stage.type]?.inProgress, 0)
          },
          { leaseMs: LASTING_LEASE_MS },
        ),
    },
    {
      name: 'a handler that enqueues after SIGTERM stores its job, and the process exits 0',
      guarantees: ['I1', 'I8'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(
          stage,
          async ({ mill, start }) => {
            const worker = start('worker')
            await worker.heard('ready')
            const { id } = await mill.enqueue(defineJob({ type: stage.type, attempts: 1 }), handsOn)
            await worker.heard('started')
            worker.signal('SIGTERM')
            await worker.heard('stopping')
            worker.go()
            assert.equal(await worker.exited(), 0)
            assert.equal((await mill.job(id))?.state, 'completed')
            assert.equal((await mill.counts())[nextTypeOf(stage.type)]?.ready, 1)
          },
          { leaseMs: LASTING_LEASE_MS },
        ),
    },
    {
      name: 'a worker process paused past its lease hears on waking that it has lost, and its outcome is not recorded',
      guarantees: ['I3', 'I6'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(stage, async ({ mill, start }) => {
          const paused = start('worker')
          await paused.heard('ready')
          const { id } = await mill.enqueue(defineJob({ type: stage.type }), waits)
          await paused.heard('started')
          paused.signal('SIGSTOP')
          const successor = start('worker')
          assert.equal((await successor.heard('started')).attempt, 2)
          successor.go()
          assert.equal(await mill.result(id, { timeout: '60s' }), 'by start 2')
          paused.go()
          paused.signal('SIGCONT')
          assert.equal((await paused.heard('lost')).id, id)
          assert.deepEqual(paused.all('settled'), [])
          assert.equal((await mill.job(id))?.result, 'by start 2')
        }),
    },
    {
      name: 'a holder paused past its lease has its late settle refused, though nobody has reaped the job',
      guarantees: ['I3'],
      ...need(survival, reaping, inspection),
      run: (stage) =>
        onProcesses(stage, async ({ mill, start }) => {
          const { id } = await mill.enqueue(defineJob({ type: stage.type }), waits)
          const holder = start('holder')
          await holder.heard('started')
          holder.signal('SIGSTOP')
          const untilMs = (await mill.job(id))?.leaseUntilMs ?? 0
          await eventually(() => Date.now() > untilMs, 'the end of the lease')
          holder.go()
          holder.signal('SIGCONT')
          assert.deepEqual(await holder.heard('lost'), { event: 'lost', id, reason: 'expired' })
          const view = await mill.job(id)
          assert.deepEqual([view?.state, view?.result, view?.attempt], ['in_progress', null, 1])
        }),
    },
    {
      name: 'a holder paused past its lease has its late settle refused after another has completed the job',
      guarantees: ['I3', 'I6'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(stage, async ({ mill, start }) => {
          const { id } = await mill.enqueue(defineJob({ type: stage.type }), waits)
          const holder = start('holder')
          await holder.heard('started')
          holder.signal('SIGSTOP')
          const successor = start('worker')
          await successor.heard('started')
          successor.go()
          assert.equal(await mill.result(id, { timeout: '60s' }), 'by start 2')
          holder.go()
          holder.signal('SIGCONT')
          assert.equal((await holder.heard('lost')).id, id)
          assert.equal((await mill.job(id))?.result, 'by start 2')
        }),
    },
    {
      name: 'cancelling a job aborts its handler in another process',
      guarantees: ['I3'],
      ...need(survival, cancellation, inspection),
      run: (stage) =>
        onProcesses(
          stage,
          async ({ mill, start }) => {
            const worker = start('worker')
            await worker.heard('ready')
            const { id } = await mill.enqueue(defineJob({ type: stage.type }), heeds)
            await worker.heard('started')
            assert.equal(await mill.cancel(id), true)
            assert.deepEqual(await worker.heard('aborted'), { event: 'aborted', id, code: 'ERR_LEASE_LOST' })
            assert.equal((await worker.heard('lost')).reason, 'cancelled')
            assert.deepEqual(worker.all('settled'), [])
            assert.equal((await mill.job(id))?.state, 'cancelled')
          },
          { leaseMs: LASTING_LEASE_MS },
        ),
    },
  ],
}
