/** A store in the middle of its work, and what must be there again after a restore. */
import assert from 'node:assert/strict'
import { defineJob, type Mill, NonRetryable, open } from 'millrace'
import { until } from '../cli/run.ts'

const WAITING = 40
const RUNNING = 3
/** Short, so that the leases in a backup have run out soon after it is restored. */
const LEASE = '1s'

/** What was acknowledged before the backup. */
export interface Scene {
  readonly mill: Mill
  readonly waiting: readonly string[]
  /** Leased at the moment of the backup, by a worker that will never settle them. */
  readonly running: readonly string[]
  readonly dead: string
  readonly later: string
  /** Frees the handlers and closes everything. */
  end(): Promise<void>
}

export async function busyStore(url: string): Promise<Scene> {
  const mill = await open(url)
  const gate = Promise.withResolvers<string>()
  const bad = defineJob({ type: 'bad', run: () => Promise.reject(new NonRetryable('no such user')) })
  const slow = defineJob({ type: 'slow', lease: LEASE, run: () => gate.promise })
  await mill.work([bad, slow], { concurrency: 10 })
  const over = mill.events.next('job.settled')
  const { id: dead } = await mill.enqueue(bad, { user: 7 })
  await over
  const running = (await mill.enqueueMany(slow, Array(RUNNING).fill(null))).map(({ id }) => id)
  const waiting = (await mill.enqueueMany(defineJob({ type: 'mail' }), [...Array(WAITING).keys()])).map(({ id }) => id)
  const { id: later } = await mill.enqueue(defineJob({ type: 'mail' }), 'later', { delay: '1d' })
  await mill.schedules.upsert('leap-day', { cron: '0 3 29 2 *', type: 'mail', payload: null })
  await until(async () => ((await mill.counts()).slow?.inProgress ?? 0) === RUNNING)
  return {
    mill,
    waiting,
    running,
    dead,
    later,
    async end() {
      gate.resolve('done')
      await mill.close()
    },
  }
}

/** The work goes on after the backup: what it does then is not in the backup. */
export async function workOn({ mill, waiting }: Scene): Promise<void> {
  const worker = await mill.work([defineJob({ type: 'mail', run: () => 'sent' })])
  await until(async () => ((await mill.counts()).mail?.completed ?? 0) === waiting.length)
  await worker.stop()
}

/** Nothing of the scene is lost, what was leased is recovered, and the work goes on from there. */
export async function checkRestored(
  url: string,
  { waiting, running, dead, later }: Omit<Scene, 'mill' | 'end'>,
): Promise<void> {
  const mill = await open(url)
  try {
    const counts = await mill.counts()
    assert.deepEqual([counts.mail?.ready, counts.mail?.delayed, counts.bad?.dead], [waiting.length, 1, 1])
    assert.equal(counts.slow?.inProgress, running.length, 'as they were at the moment of the backup')
    const mail = defineJob({ type: 'mail', run: () => 'sent' })
    const slow = defineJob({ type: 'slow', lease: LEASE, backoff: { kind: 'fixed', delay: 0 }, run: () => 'done' })
    await mill.work([mail, slow], { reap: '100ms' })
    await until(async () => {
      const { mail: sent, slow: done } = await mill.counts()
      return sent?.completed === waiting.length && done?.completed === running.length
    })
    for (const id of running) assert.equal((await mill.job(id))?.attempt, 2, 'the lost start counts')
    for (const id of waiting) assert.equal((await mill.job(id))?.state, 'completed')
    assert.deepEqual([(await mill.job(dead))?.state, (await mill.job(later))?.state], ['dead_letter', 'queued'])
    assert.deepEqual(
      (await mill.schedules.list()).map(({ name }) => name),
      ['leap-day'],
    )
  } finally {
    await mill.close()
  }
}
