import assert from 'node:assert/strict'
import type { ClaimRequest, Consumer } from '../../../src/engine/engine.ts'
import type { Lease } from '../../../src/engine/outcome.ts'
import type { CaseFile } from '../../case.ts'
import { need, reaping } from '../../needs.ts'
import { complete, first, idsOf, REAPER, rejection, release, type Stage } from '../../stage.ts'

/** Real time, because the store's answers take it. */
const SOON_MS = 2_000

const WORKER = 'suite:1:forgetful'

/**
 * A consumer, and a claim of its that is carried out and whose answer nobody receives. Where there is a wire the answer is
 * lost on it; elsewhere the caller leaves before the answer comes, and `claimInVain` brings what an engine that answers
 * at once has told it all the same. One claim must have been made before, so that the next request of the worker is the
 * claim itself.
 */
async function forgetful(
  stage: Stage,
  worker: string,
  open: (on: Stage['engine']) => Promise<Consumer>,
): Promise<{ readonly consumer: Consumer; claimInVain(from: 'ready' | 'expired'): Promise<readonly Lease[]> }> {
  const lossy = await stage.harness.lossyView?.()
  const consumer = await open(lossy?.engine ?? stage.engine)
  return {
    consumer,
    async claimInVain(from) {
      const gone = new AbortController()
      const request: ClaimRequest = { max: 5, waitMs: 0, signal: gone.signal, from }
      if (lossy !== undefined) {
        lossy.loseNextAnswer(worker)
        assert.match(await rejection(consumer.claim(request)), /^ERR_STORAGE/)
        return []
      }
      const claim = consumer.claim(request)
      gone.abort()
      return claim
    },
  }
}

export const lostClaims: CaseFile = {
  level: 'port',
  concept: 'Claims whose answer is lost',
  cases: [
    {
      name: 'lost claims: a start that nobody was told of does not count, and its job is soon ready again',
      guarantees: ['I2', 'I5', 'I6'],
      async run(stage) {
        const { consumer, claimInVain } = await forgetful(stage, WORKER, (on) => stage.consume({ on, worker: WORKER }))
        await stage.put()
        await stage.settle(consumer, await stage.one(consumer), complete)
        const jobs = stage.jobs(3, { attempts: 1 })
        await stage.engine.enqueue(jobs)
        const told = await claimInVain('ready')
        await consumer.settle(told.map((lease) => ({ lease, outcome: release() })))
        await stage.until(SOON_MS, async () => (await stage.counts()).inProgress === 0, 'taking the claim back')
        const again = await stage.take(consumer, 5)
        assert.deepEqual(
          again.map(({ job, attempt }) => [job.id, attempt]),
          jobs.map(({ id }) => [id, 1]),
        )
        for (const lease of again) await stage.settle(consumer, lease, complete)
        await stage.expectCounts({ completed: 4 })
      },
    },
    {
      name: 'lost claims: what a reaper never received is soon there for the next, and the dead holder’s start counts',
      guarantees: ['I5', 'I6'],
      ...need(reaping),
      async run(stage) {
        const { consumer: reaper, claimInVain } = await forgetful(stage, REAPER, (on) => stage.reaper(on))
        assert.deepEqual(await stage.take(reaper, 5, { from: 'expired' }), [])
        await stage.put({ attempts: 2 })
        const lost = await stage.one(await stage.consume())
        await stage.expire(lost)
        let taken = await claimInVain('expired')
        const next = await stage.reaper()
        // Far less time passes than a reaper may hold a job.
        await stage.until(
          SOON_MS,
          async () => {
            if (taken.length === 0) taken = await stage.take(next, 5, { from: 'expired' })
            return taken.length > 0
          },
          'taking the claim back',
        )
        assert.deepEqual([idsOf(taken), first(taken).attempt], [[lost.job.id], 1])
      },
    },
  ],
}
