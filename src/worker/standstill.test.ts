import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../client/mill.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

/** Time passes between two steps of the program, as when its process was stopped and goes on: no timer runs meanwhile. */
class HaltingClock extends TestClock {
  #haltedMs = 0

  override nowMs(): number {
    return super.nowMs() + this.#haltedMs
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#haltedMs
  }

  halt(ms: number): void {
    this.#haltedMs += ms
  }
}

test('a job that was claimed before its process stood still for longer than its lease is not started', async (t) => {
  const clock = new HaltingClock()
  const mill = await open('memory:', { random: () => 0, clock })
  t.after(() => mill.close())
  const started: unknown[] = []
  const lost: unknown[] = []
  mill.events.on('lease.lost', ({ reason, started: wasStarted }) => void lost.push([reason, wasStarted]))
  const job = defineJob({
    type: 'a',
    lease: '1s',
    run: ({ payload }) => {
      started.push(payload)
      if (payload === 'first') clock.halt(2_000)
    },
  })
  await mill.enqueueMany(job, ['first', 'second'])
  const worker = await mill.work([job], { concurrency: 2, reap: false })
  await clock.advance(0)
  assert.deepEqual(started, ['first'])
  assert.deepEqual(lost, [
    ['expired', true],
    ['expired', false],
  ])
  await worker.stop()
})
