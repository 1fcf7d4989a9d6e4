import assert from 'node:assert/strict'
import type { Consumer, Engine } from '../../../src/engine/engine.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { inspection, need, reaping } from '../../needs.ts'
import { gate, type Stage } from '../../stage.ts'

/** The same engine for a worker that gets one job and is then cut off from claiming and renewing, but not from settling. */
function cutOff(stage: Stage): Engine {
  const mute = (consumer: Consumer): Consumer => {
    let hasClaimed = false
    return {
      claim: async (request) => {
        if (hasClaimed) {
          await stage.harness.clock.sleep(request.waitMs, request.signal)
          return []
        }
        const leases = await consumer.claim(request)
        hasClaimed = leases.length > 0
        return leases
      },
      renew: async () => [],
      settle: (settlements) => consumer.settle(settlements),
      report: (lease, progress) => consumer.report(lease, progress),
      listen: (listener) => consumer.listen(listener),
      close: () => consumer.close(),
    }
  }
  return new Proxy(stage.engine, {
    get(target, name) {
      if (name === 'threadUrl') return null
      if (name === 'consume')
        return async (...given: Parameters<Engine['consume']>) => mute(await target.consume(...given))
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

export const leaseKeeping: CaseFile = {
  level: 'client',
  concept: 'Keeping and losing leases',
  cases: [
    {
      // X006
      name: 'a job that takes longer than its lease keeps it and runs once',
      guarantees: ['I3', 'I4'],
      async run(stage) {
        const [mill, rival] = [await stage.mill(), await stage.mill(await stage.other())]
        let starts = 0
        const job = numberedJob(stage, {
          run: async () => {
            starts += 1
            await stage.harness.clock.sleep(stage.leaseMs * 4)
          },
        })
        const seen = record(mill)
        await mill.enqueue(job, { n: 1 })
        await mill.work([job], { reap: false })
        await stage.until(SOON_MS, () => starts === 1, 'the start')
        const reap = rival.engine.capabilities.recovery === 'reaper' ? { reap: stage.leaseMs / 2 } : {}
        await rival.work([job], reap)
        await stage.until(stage.leaseMs * 4 + SOON_MS, () => seen.settled.length === 1, 'the end')
        assert.deepEqual([starts, seen.lost], [1, []])
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      // A01
      name: 'the job of a worker that vanished is run again by another, as its second start',
      guarantees: ['I1', 'I2', 'I6'],
      ...need(reaping),
      async run(stage) {
        const mill = await stage.mill()
        const attempts: number[] = []
        const job = numberedJob(stage, { run: ({ job: { attempt } }) => attempts.push(attempt) })
        const { id } = await mill.enqueue(job, { n: 1 })
        // A consumer that claims and then does nothing more is all that a store sees of a crash.
        const lease = await stage.one(await stage.consume({ on: await stage.other() }))
        assert.equal(lease.job.id, id)
        await mill.work([job], { reap: 200 })
        await stage.until(stage.leaseMs + SOON_MS, () => attempts.length === 1, 'the second start')
        assert.deepEqual(attempts, [2])
      },
    },
    {
      name: 'a job whose holder vanishes at every start is dead after its last',
      guarantees: ['I5', 'I6'],
      ...need(reaping),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { attempts: 2 })
        const bystander = numberedJob(stage, { run: () => null }, `${stage.type}-bystander`)
        await mill.enqueue(job, { n: 1 }, { backoff: { kind: 'fixed', delay: 0 } })
        await mill.work([bystander], { reap: 100 })
        const doomed = await stage.consume({ on: await stage.other() })
        for (const attempt of [1, 2]) {
          await stage.until(stage.leaseMs + SOON_MS, async () => (await stage.counts()).ready === 1, `start ${attempt}`)
          assert.equal((await stage.one(doomed)).attempt, attempt)
        }
        await stage.until(stage.leaseMs + SOON_MS, async () => (await stage.counts()).dead === 1, 'the dead letter')
      },
    },
    {
      name: 'a settle that is refused gives no completion: no event, no hook, no result',
      guarantees: ['I3'],
      ...need(reaping, inspection),
      async run(stage) {
        const zombie = await stage.mill(cutOff(stage))
        const rival = await stage.mill(await stage.other())
        const [running, hold] = [gate(), gate()]
        const heard: string[] = []
        const hooks = { onComplete: () => heard.push('complete'), onFailed: () => heard.push('failed') }
        const late = numberedJob(stage, {
          hooks,
          run: async () => {
            running.open()
            await hold.opened
            return 'late'
          },
        })
        const seen = record(zombie)
        await zombie.work([late], { reap: false })
        const { id } = await zombie.enqueue(late, { n: 1 })
        await stage.within(SOON_MS, running.opened, 'the start')
        const hasty = numberedJob(stage, { run: () => 'in time' })
        await rival.work([hasty], { reap: 100 })
        const done = async (): Promise<boolean> => (await rival.job(id))?.state === 'completed'
        await stage.until(stage.leaseMs + SOON_MS, done, 'the second start')
        hold.open()
        await stage.until(SOON_MS, () => seen.lost.length === 1, 'the refusal')
        await stage.harness.advance(100)
        assert.deepEqual([seen.settled, heard], [[], []])
        const view = await rival.job(id)
        assert.deepEqual([view?.result, view?.attempt], ['in time', 2])
      },
    },
  ],
}
