import assert from 'node:assert/strict'
import { limits } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { busiestWindow, meter, numberedJob, record, SOON_MS } from '../../crew.ts'
import { need } from '../../needs.ts'
import { rejection } from '../../stage.ts'

export const workerLimits: CaseFile = {
  level: 'client',
  concept: 'Concurrency and rates',
  cases: [
    {
      // C20 C21
      name: 'a worker never runs more at once than its concurrency, and uses all of it',
      guarantees: ['I8'],
      async run(stage) {
        const mill = await stage.mill()
        const running = meter()
        const job = numberedJob(stage, {
          run: async () => {
            running.enter()
            await stage.harness.clock.sleep(20)
            running.leave()
          },
        })
        await mill.enqueueMany(
          job,
          Array.from({ length: 40 }, (_, n) => ({ n })),
        )
        const seen = record(mill)
        await mill.work([job], { concurrency: 7 })
        await stage.until(SOON_MS, () => seen.settled.length === 40, 'the end of all jobs')
        assert.equal(running.most, 7)
      },
    },
    {
      // A54
      name: 'a type never runs more at once than its own concurrency, and others are not held up',
      guarantees: ['I8'],
      async run(stage) {
        const mill = await stage.mill()
        const meters = { narrow: meter(), wide: meter() }
        const sleeper = (which: 'narrow' | 'wide') => async (): Promise<void> => {
          meters[which].enter()
          await stage.harness.clock.sleep(20)
          meters[which].leave()
        }
        const narrow = numberedJob(stage, { concurrency: 2, run: sleeper('narrow') })
        const wide = numberedJob(stage, { run: sleeper('wide') }, `${stage.type}-wide`)
        for (const job of [narrow, wide])
          await mill.enqueueMany(
            job,
            Array.from({ length: 20 }, (_, n) => ({ n })),
          )
        const seen = record(mill)
        await mill.work([narrow, wide], { concurrency: 6 })
        await stage.until(SOON_MS, () => seen.settled.length === 40, 'the end of all jobs')
        assert.equal(meters.narrow.most, 2)
        assert.ok(meters.wide.most >= 4, `only ${meters.wide.most} of the other type ran at once`)
      },
    },
    {
      // A75
      name: 'no window holds more starts of handlers than the rate limit, over three workers',
      guarantees: ['I10'],
      ...need(limits),
      async run(stage) {
        // A store may take a while to hear of a start; it must not take a whole window.
        const [max, perMs, count] = [5, 2_000, 12]
        const mills = [await stage.mill(), await stage.mill(await stage.other()), await stage.mill()]
        const startsMs: number[] = []
        const job = numberedJob(stage, { limit: { max, per: perMs }, run: () => startsMs.push(stage.nowMs) })
        await mills[0]?.enqueueMany(
          job,
          Array.from({ length: count }, (_, n) => ({ n })),
        )
        for (const mill of mills) await mill.work([job], { concurrency: 20 })
        await stage.until(2 * SOON_MS, () => startsMs.length === count, 'all starts')
        // Whole windows, wherever they begin: not claims but starts are what the limit is about.
        const busiest = busiestWindow(startsMs, perMs)
        assert.ok(
          busiest <= max,
          `${busiest} starts within ${perMs} ms: ${startsMs.map((atMs) => atMs - (startsMs[0] ?? 0)).join(' ')}`,
        )
      },
    },
    {
      name: 'settings that contradict each other are refused before anything is claimed',
      guarantees: ['I10'],
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: () => null })
        await mill.enqueue(job, { n: 1 })
        assert.equal(await rejection(mill.work([job], { concurrency: 0 })), 'ERR_OPTION_INVALID')
        assert.equal(await rejection(mill.work([job], { poll: 0 })), 'ERR_OPTION_INVALID')
        assert.equal(await rejection(mill.work([numberedJob(stage)])), 'ERR_HANDLER_MISSING')
        await stage.expectCounts({ ready: 1 })
      },
    },
  ],
}
