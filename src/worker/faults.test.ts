import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Mill, open } from '../client/mill.ts'
import type { Consumer } from '../engine/engine.ts'
import type { Settlement } from '../engine/outcome.ts'
import { messageOf } from '../errors.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

async function turns(count = 20): Promise<void> {
  for (let left = count; left > 0; left -= 1) await turn()
}

interface Stage {
  readonly mill: Mill
  readonly clock: TestClock
  readonly errors: MillEvents['worker.error'][]
}

/** A memory engine whose consumers pass through `change` first. */
async function staged(
  t: { after(run: () => Promise<void>): void },
  change: (consumer: Consumer) => void,
): Promise<Stage> {
  const clock = new TestClock()
  const mill = await open('memory:', { random: () => 0, clock })
  const consume = mill.engine.consume.bind(mill.engine)
  mill.engine.consume = async (subscription) => {
    const consumer = await consume(subscription)
    if (subscription.types !== 'every') change(consumer)
    return consumer
  }
  const errors: MillEvents['worker.error'][] = []
  mill.events.on('worker.error', (event) => void errors.push(event))
  t.after(async () => {
    const closed = mill.close()
    await clock.advance('1m')
    await closed
  })
  return { mill, clock, errors }
}

// B91
test('after an error in the claim the worker sleeps the poll interval and goes on', async (t) => {
  let broken = true
  const { mill, clock, errors } = await staged(t, (consumer) => {
    const claim = consumer.claim.bind(consumer)
    consumer.claim = (request) => (broken ? Promise.reject(new Error('no claim')) : claim(request))
  })
  const job = defineJob({ type: 'a', run: () => {} })
  const { id } = await mill.enqueue(job, null)
  await mill.work([job], { poll: '3s' })
  await turns()
  assert.equal(errors.length, 1)
  assert.equal(errors[0]?.during, 'claim')
  broken = false
  await clock.advance(2_999)
  assert.equal((await mill.job(id))?.state, 'queued')
  await clock.advance(1)
  assert.equal((await mill.job(id))?.state, 'completed')
  assert.equal(errors.length, 1)
})

test('an engine that answers at once with nothing does not make the worker spin', async (t) => {
  let claims = 0
  const { mill, clock } = await staged(t, (consumer) => {
    consumer.claim = async () => {
      claims += 1
      return []
    }
  })
  await mill.work([defineJob({ type: 'a', run: () => {} })])
  await clock.advance('10s')
  assert.ok(claims < 200, `${claims} claims in 10 s`)
})

test('settlements that the store rejects are tried again, and nothing is reported before it has accepted', async (t) => {
  let faults = 3
  const { mill, clock, errors } = await staged(t, (consumer) => {
    const settle = consumer.settle.bind(consumer)
    consumer.settle = (settlements) => {
      faults -= 1
      return faults >= 0 ? Promise.reject(new Error('busy')) : settle(settlements)
    }
  })
  const completed: unknown[] = []
  const job = defineJob({ type: 'a', hooks: { onComplete: ({ id }) => void completed.push(id) }, run: () => {} })
  const settled: string[] = []
  mill.events.on('job.settled', ({ job: { id } }) => void settled.push(id))
  const receipts = await mill.enqueueMany(job, [1, 2, 3, 4])
  await mill.work([job])
  await turns()
  assert.deepEqual([settled, completed], [[], []])
  await clock.advance('2s')
  const ids = receipts.map(({ id }) => id).sort()
  assert.deepEqual([...settled].sort(), ids)
  assert.deepEqual([...completed].sort(), ids)
  assert.ok(errors.length >= 1 && errors.every(({ during }) => during === 'settle'))
})

test('a job that was claimed again before its failure was answered starts after its hooks have heard of the failure', async (t) => {
  let answer = (): void => {}
  const { mill } = await staged(t, (consumer) => {
    const settle = consumer.settle.bind(consumer)
    consumer.settle = async (settlements) => {
      const refused = await settle(settlements)
      await new Promise<void>((resolve) => {
        answer = resolve
      })
      return refused
    }
  })
  const heard: string[] = []
  const job = defineJob({
    ...{ type: 'a', attempts: 2, backoff: { kind: 'fixed', delay: 0 } },
    hooks: { onStart: ({ attempt }) => heard.push(`start ${attempt}`), onFailed: () => heard.push('failed') },
    run: ({ job: { attempt } }) => {
      if (attempt === 1) throw new Error('no')
    },
  })
  const { id } = await mill.enqueue(job, null)
  await mill.work([job])
  await turns()
  assert.equal((await mill.job(id))?.attempt, 2, 'it was not claimed again')
  assert.deepEqual(heard, ['start 1'])
  answer()
  await turns()
  assert.deepEqual(heard, ['start 1', 'failed', 'start 2'])
  answer()
  await turns()
})

test('one settlement that the store can never take does not drag the others along', async (t) => {
  let poison = ''
  const { mill, clock } = await staged(t, (consumer) => {
    const settle = consumer.settle.bind(consumer)
    consumer.settle = (settlements) =>
      settlements.some(({ lease }) => lease.job.id === poison)
        ? Promise.reject(new Error('constraint failed'))
        : settle(settlements)
  })
  const job = defineJob({ type: 'a', lease: '20s', run: () => {} })
  const receipts = await mill.enqueueMany(job, Array(9).fill(null))
  poison = receipts[4]?.id ?? ''
  await mill.work([job], { reap: '5s' })
  await clock.advance('10s')
  const counts = (await mill.counts()).a
  assert.equal(counts?.completed, 8)
  assert.equal(counts?.inProgress, 1)
  // Given up after the lease's length, it is no longer renewed: the reaper takes it over within another lease.
  const reaped = mill.events.next('lease.reaped')
  await clock.advance('35s')
  assert.equal((await reaped).job.id, poison)
})

// X079
test('a settlement that comes after the lease is refused and reported, not counted as done', async (t) => {
  const { mill, clock } = await staged(t, (consumer) => {
    consumer.renew = async () => []
  })
  const lost: unknown[] = []
  const settled: unknown[] = []
  mill.events.on('lease.lost', ({ reason, attempt }) => void lost.push([reason, attempt]))
  mill.events.on('job.settled', () => void settled.push(1))
  const job = defineJob({ type: 'a', lease: '1s', run: () => clock.sleep(3_000) })
  await mill.enqueue(job, null)
  await mill.work([job], { reap: false })
  await clock.advance('3s')
  assert.deepEqual(lost, [['expired', 1]])
  assert.deepEqual(settled, [])
})

test('progress that the store cannot take is reported and forgiven', async (t) => {
  const { mill, errors } = await staged(t, (consumer) => {
    consumer.report = () => Promise.reject(new Error('disk full'))
  })
  const job = defineJob({ type: 'a', run: ({ progress }) => progress(1) })
  const receipt = await mill.enqueue(job, null)
  await mill.work([job])
  assert.equal(await mill.result(receipt), true)
  assert.deepEqual(
    errors.map(({ during }) => during),
    ['progress'],
  )
})

test('a handler that learns by its progress that the lease is gone is aborted', async (t) => {
  const { mill } = await staged(t, (consumer) => {
    consumer.report = async () => false
    consumer.renew = async (leases) => leases.map((lease) => ({ lease, reason: 'revoked' }))
  })
  const job = defineJob({
    type: 'a',
    async run({ progress, signal }) {
      assert.equal(await progress(1), false)
      assert.equal(signal.aborted, true)
    },
  })
  await mill.enqueue(job, null)
  const lost = mill.events.next('lease.lost')
  await mill.work([job])
  assert.equal((await lost).reason, 'revoked')
})

test('no more is claimed while the store has too many outcomes unanswered', async (t) => {
  const answers: (() => void)[] = []
  const { mill } = await staged(t, (consumer) => {
    const settle = consumer.settle.bind(consumer)
    consumer.settle = async (settlements) => {
      await new Promise<void>((resolve) => answers.push(resolve))
      return settle(settlements)
    }
  })
  const job = defineJob({ type: 'a', run: () => {} })
  let settled = 0
  mill.events.on('job.settled', () => {
    settled += 1
  })
  await mill.enqueueMany(job, Array(5_000).fill(null))
  await mill.work([job], { concurrency: 10 })
  await turns(200)
  const inProgress = (await mill.counts()).a?.inProgress ?? 0
  assert.ok(inProgress > 1_000 && inProgress < 1_500, `${inProgress} in progress`)
  while (settled < 5_000) {
    for (const answer of answers.splice(0)) answer()
    await turn()
  }
})

/** A store that refuses outcomes whose text has a word in it, as a database of another encoding would. */
function refusing(consumer: Consumer, word: string): void {
  const settle = consumer.settle.bind(consumer)
  consumer.settle = async (settlements) => {
    const isRefused = ({ outcome }: Settlement): boolean => JSON.stringify(outcome).includes(word)
    const refused = settlements.filter(isRefused)
    const lost = await settle(settlements.filter((settlement) => !isRefused(settlement)))
    return [
      ...lost,
      ...refused.map(({ lease }) => ({ lease, reason: 'unstorable', error: new Error('no such character') }) as const),
    ]
  }
}

test('an outcome whose text the store refuses is settled without it at once, and the others of its batch as they are', async (t) => {
  const { mill, errors } = await staged(t, (consumer) => refusing(consumer, '€'))
  const failed: unknown[] = []
  const job = defineJob({
    type: 'a',
    attempts: 1,
    run: ({ payload }) => {
      if (payload === 'throw') throw new Error('5 € are missing')
      return payload
    },
    hooks: { onFailed: (_job, error) => void failed.push(Reflect.get(Object(error), 'code') ?? 'no code') },
  })
  const [thrown, returned, plain] = await mill.enqueueMany(job, ['throw', '5 €', '5 $'])
  await mill.work([job])
  await turns()
  const views = await Promise.all([thrown, returned, plain].map((receipt) => mill.job(receipt?.id ?? '')))
  assert.deepEqual(
    views.map((view) => [view?.state, view?.result, view?.error?.code]),
    [
      ['dead_letter', null, 'ERR_STORAGE_REFUSED'],
      ['dead_letter', null, 'ERR_STORAGE_REFUSED'],
      ['completed', '5 $', undefined],
    ],
  )
  // What the store did not take is told: the error's own words, never a result.
  const told = errors.map(({ during, error }) => `${during}: ${messageOf(error)}`)
  assert.equal(told.length, 2)
  assert.match(told[0] ?? '', /settle: .*'dead' of job .* without it: 5 € are missing/)
  assert.doesNotMatch(told[1] ?? '', /€/)
  assert.deepEqual(failed, ['no code', 'ERR_STORAGE_REFUSED'])
})

test('a store that refuses an outcome even without its text is asked again until the lease is over', async (t) => {
  let calls = 0
  const { mill, clock, errors } = await staged(t, (consumer) => {
    const settle = consumer.settle.bind(consumer)
    consumer.settle = async (settlements) => {
      calls += 1
      if (calls > 4) return settle(settlements)
      return settlements.map(({ lease }) => ({ lease, reason: 'unstorable', error: new Error('no') }) as const)
    }
  })
  const job = defineJob({ type: 'a', attempts: 1, run: () => 'done' })
  const { id } = await mill.enqueue(job, null)
  await mill.work([job])
  await clock.advance('10s')
  assert.equal((await mill.job(id))?.error?.code, 'ERR_STORAGE_REFUSED')
  assert.equal(errors.length, 4)
})
