import assert from 'node:assert/strict'
import { defineJob } from '../../../src/job/definition.ts'
import { slots } from '../../bounds.ts'
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
      name: 'a killed worker process keeps its slots until its leases have run out, and loses none of them',
      guarantees: ['I6', 'I10'],
      ...need(survival, slots, inspection),
      run: (stage) =>
        onProcesses(
          stage,
          async ({ mill, start }) => {
            const deed: Deed = 'wait-for-go'
            const job = defineJob({ type: stage.type })
            const enqueue = (count: number, orgId: string) =>
              mill.enqueueMany(job, Array(count).fill(deed), { tenant: { orgId } })
            const doomed = start('worker')
            await doomed.heard('ready')
            await enqueue(2, 'ann')
            await enqueue(2, 'cleo')
            await eventually(() => doomed.all('started').length === 4, 'a start in each slot of the worker')
            const survivor = start('worker')
            await survivor.heard('ready')
            const [waiting] = await enqueue(3, 'ann')
            const [free] = await enqueue(1, 'ben')
            assert.equal((await survivor.heard('started')).id, free?.id, 'only the third tenant has a free slot')
            doomed.signal('SIGKILL')
            assert.equal(await doomed.exited(), 'SIGKILL')
            await eventually(() => survivor.all('started').length === 4, 'starts in the slots of the killed process')
            const running = await mill.jobs({ type: stage.type, state: 'in_progress' })
            const ofAnn = running.filter(({ tenant }) => tenant?.orgId === 'ann')
            assert.ok(ofAnn.length <= 2, `${ofAnn.length} jobs of a tenant with two slots`)
            survivor.go()
            assert.equal(await mill.result(waiting ?? '', { timeout: '60s' }), 'by start 1')
            await eventually(async () => (await mill.counts())[stage.type]?.completed === 8, 'the end of all jobs')
          },
          { concurrency: { max: 2, by: 'tenant' } },
        ),
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
