import assert from 'node:assert/strict'
import { defineJob } from '../../../src/job/definition.ts'
import type { CaseFile } from '../../case.ts'
import { inspection, need, survival } from '../../needs.ts'
import { eventually, onProcesses } from '../../process/child.ts'
import type { Deed } from '../../process/protocol.ts'

export const crashes: CaseFile = {
  level: 'process',
  concept: 'Processes that are killed',
  cases: [
    {
      // A01 B139
      name: 'a worker process killed in the middle of a job: another one runs it as its second start',
      guarantees: ['I1', 'I2', 'I6'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(stage, async ({ mill, start }) => {
          const doomed = start('worker')
          await doomed.heard('ready')
          const deed: Deed = 'wait-for-go'
          const { id } = await mill.enqueue(defineJob({ type: stage.type }), deed)
          assert.equal((await doomed.heard('started')).attempt, 1)
          doomed.signal('SIGKILL')
          assert.equal(await doomed.exited(), 'SIGKILL')
          assert.equal((await mill.job(id))?.state, 'in_progress')
          const successor = start('worker')
          assert.deepEqual(await successor.heard('started'), { event: 'started', id, attempt: 2 })
          successor.go()
          assert.equal(await mill.result(id, { timeout: '60s' }), 'by start 2')
          assert.equal((await mill.job(id))?.attempt, 2)
        }),
    },
    {
      // B140
      name: 'a job that kills its process at every start is dead after its last',
      guarantees: ['I5', 'I6'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(stage, async ({ mill, start }) => {
          const deed: Deed = 'kill-process'
          const options = { attempts: 2, backoff: { kind: 'fixed', delay: 0 } } as const
          const { id } = await mill.enqueue(defineJob({ type: stage.type }), deed, options)
          const attempts: number[] = []
          for (let life = 0; life < 2; life += 1) {
            const victim = start('worker')
            attempts.push((await victim.heard('started')).attempt)
            assert.equal(await victim.exited(), 'SIGKILL')
          }
          assert.deepEqual(attempts, [1, 2])
          const survivor = start('worker')
          await survivor.heard('ready')
          await eventually(async () => (await mill.job(id))?.state === 'dead_letter', 'the dead letter')
          assert.deepEqual(survivor.all('started'), [], 'started once more than allowed')
          const view = await mill.job(id)
          assert.deepEqual([view?.attempt, view?.state, view?.error?.code], [2, 'dead_letter', 'ERR_LEASE_EXPIRED'])
        }),
    },
    {
      // A12
      name: 'every job that was acknowledged is there after its producer was killed',
      guarantees: ['I1'],
      ...need(survival, inspection),
      run: (stage) =>
        onProcesses(stage, async ({ mill, start }) => {
          const producer = start('producer')
          await eventually(() => producer.all('acknowledged').length >= 100, 'a hundred acknowledgements')
          producer.signal('SIGKILL')
          assert.equal(await producer.exited(), 'SIGKILL')
          const acknowledged = producer.all('acknowledged').map(({ id }) => id)
          for (const id of acknowledged) assert.equal((await mill.job(id))?.state, 'queued', `job ${id} is lost`)
          const ready = (await mill.counts())[stage.type]?.ready ?? 0
          assert.ok(ready >= acknowledged.length)
        }),
    },
  ],
}
