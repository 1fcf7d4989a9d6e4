/** Jobs that a program added which knows only BullMQ: they are validated, ordered, retried and buried as ours are. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { currentJob, defineJob } from 'millrace'
import { z } from 'zod'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

const Mail = z.object({ to: z.string() })

/** A program of its own, in JavaScript, that has never heard of Millrace. */
const PRODUCER = `
  import { Queue } from 'bullmq'
  const [host, port, prefix] = process.argv.slice(1)
  const queue = new Queue('mail', { connection: { host, port: Number(port) }, prefix })
  await queue.add('welcome', { to: 'ann' })
  await queue.addBulk([
    { name: 'bulk', data: { to: 'bob' }, opts: { priority: 5, attempts: 2 } },
    { name: 'bulk', data: { to: 7 }, opts: { jobId: 'own-id' } },
  ])
  await queue.close()
`

describe('jobs of a BullMQ producer', { timeout: 300_000 }, () => {
  test('from another process are run, and their payloads validated', async (t) => {
    const { mill, prefix, url } = await besideBullmq(t)
    const { hostname, port } = new URL(url)
    const args = ['--input-type=module', '-e', PRODUCER, hostname, port, prefix]
    const program = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 120_000 })
    assert.equal(program.status, 0, program.stderr)
    const ran: string[] = []
    const mail = defineJob({
      type: 'mail',
      payload: Mail,
      run: ({ payload }) => {
        ran.push(payload.to)
        return `to ${payload.to}`
      },
    })
    await mill.work([mail])
    const [welcome, bulk, bad] = [
      await over(mill, 'mail#1'),
      await over(mill, 'mail#2'),
      await over(mill, 'mail#own-id'),
    ]
    assert.deepEqual([welcome.state, welcome.result, welcome.attempts, welcome.priority], ['completed', 'to ann', 3, 1])
    assert.deepEqual([bulk.state, bulk.attempts, bulk.priority], ['completed', 2, 5])
    assert.deepEqual([bad.state, bad.error?.code, bad.attempt], ['dead_letter', 'ERR_PAYLOAD_INVALID', 1])
    assert.deepEqual(ran.toSorted(), ['ann', 'bob'])
    assert.equal((await mill.counts()).mail?.dead, 1)
  })

  test('are retried by the definition’s policy as often as they say, and then are dead letters that can be replayed', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const plain = await queue('mail').add(
      'x',
      { to: 'ann' },
      { attempts: 2, backoff: { type: 'fixed', delay: 3_600_000 } },
    )
    const starts: number[] = []
    let isDown = true
    const mail = defineJob({
      type: 'mail',
      payload: Mail,
      attempts: 9,
      backoff: { kind: 'fixed', delay: 1 },
      run: () => {
        starts.push(currentJob()?.attempt ?? 0)
        if (isDown) throw new Error('no such box')
        return 'sent'
      },
    })
    await mill.work([mail])
    const id = `mail#${plain.id}`
    const dead = await over(mill, id)
    assert.deepEqual([dead.state, dead.attempt, dead.error?.message], ['dead_letter', 2, 'no such box'])
    assert.deepEqual(starts, [1, 2])
    isDown = false
    const letters = mill.engine.deadLetters
    assert.deepEqual(await letters?.requeue([id], { who: 'ann', reason: 'the box is back' }), [true])
    assert.equal((await over(mill, id)).result, 'sent')
    assert.deepEqual(starts, [1, 2, 1])
  })

  test('come in BullMQ’s order among ours: 0 before all, then 1 and up, late ones when due', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('mail')
    await foreign.add('x', { to: 'seven' }, { priority: 7 })
    await mill.enqueue(defineJob({ type: 'mail', payload: Mail }), { to: 'ours, three' }, { priority: 3 })
    await foreign.add('x', { to: 'a million' }, { priority: 1_000_000 })
    await foreign.add('x', { to: 'three' }, { priority: 3 })
    await foreign.add('x', { to: 'zero' })
    await foreign.add('x', { to: 'zero, first' }, { lifo: true })
    await mill.enqueue(defineJob({ type: 'mail', payload: Mail }), { to: 'ours, one' }, { priority: 1 })
    const late = await foreign.add('x', { to: 'late' }, { delay: 3_600_000 })
    const ran: { readonly to: string; readonly atMs: number }[] = []
    const mail = defineJob({
      type: 'mail',
      payload: Mail,
      run: ({ payload }) => void ran.push({ to: payload.to, atMs: Date.now() }),
    })
    await mill.work([mail], { concurrency: 1 })
    await until(async () => ran.length === 7)
    // Only now: on a slow machine it would else be due, and before all the others, when the worker starts.
    const delayedAtMs = Date.now()
    await late.changeDelay(300)
    await over(mill, `mail#${late.id}`)
    assert.deepEqual(
      ran.map(({ to }) => to),
      ['zero, first', 'zero', 'ours, one', 'ours, three', 'three', 'seven', 'a million', 'late'],
    )
    assert.ok((ran.at(-1)?.atMs ?? 0) >= delayedAtMs + 300)
  })

  test('with a deduplication id are one until it ends, and its id is free then', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('mail')
    const options = { deduplication: { id: 'once' } }
    const first = await foreign.add('x', { to: 'a' }, options)
    assert.equal((await foreign.add('x', { to: 'b' }, options)).id, first.id)
    const ran: string[] = []
    const mail = defineJob({ type: 'mail', payload: Mail, run: ({ payload }) => void ran.push(payload.to) })
    await mill.work([mail])
    await over(mill, `mail#${first.id}`)
    const second = await foreign.add('x', { to: 'c' }, options)
    assert.notEqual(second.id, first.id)
    await over(mill, `mail#${second.id}`)
    assert.deepEqual(ran, ['a', 'c'])
  })

  test('that died free their deduplication id too, and keepLastIfActive brings the last one', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('mail')
    const options = { deduplication: { id: 'once', keepLastIfActive: true }, attempts: 1 }
    const first = await foreign.add('x', { to: 'a' }, options)
    const ran: string[] = []
    const mail = defineJob({
      type: 'mail',
      payload: Mail,
      run: async ({ payload }) => {
        ran.push(payload.to)
        if (payload.to !== 'a') return
        await foreign.add('x', { to: 'b' }, options)
        await foreign.add('x', { to: 'c' }, options)
        throw new Error('no')
      },
    })
    await mill.work([mail])
    assert.equal((await over(mill, `mail#${first.id}`)).state, 'dead_letter')
    await until(async () => ran.length === 2)
    assert.deepEqual(ran, ['a', 'c'])
  })

  test('whose data is no JSON, or no object, or missing, die or vanish and stop nobody', async (t) => {
    const { mill, queue, redis, prefix } = await besideBullmq(t)
    const foreign = queue('mail')
    const [torn, flat, huge] = [
      await foreign.add('x', { to: 'a' }),
      await foreign.add('x', 'just text'),
      await foreign.add('x', { to: 'b', opts: '{' }),
    ]
    await redis.hset(`${prefix}:mail:${torn.id}`, 'data', '{not json')
    await redis.hset(`${prefix}:mail:${huge.id}`, 'opts', 'nonsense', 'priority', 'NaN', 'mr', '[1')
    const noData = await foreign.add('x', { to: 'c' })
    await redis.hdel(`${prefix}:mail:${noData.id}`, 'data')
    const last = await foreign.add('x', { to: 'd' })
    const mail = defineJob({ type: 'mail', payload: Mail, run: ({ payload }) => payload.to })
    await mill.work([mail])
    assert.equal((await over(mill, `mail#${last.id}`)).result, 'd')
    for (const { id } of [torn, flat]) {
      const { state, error } = await over(mill, `mail#${id}`)
      assert.equal(state, 'dead_letter')
      assert.match(error?.code ?? '', /^ERR_PAYLOAD_(INVALID|NOT_JSON)$/)
    }
    assert.equal((await over(mill, `mail#${huge.id}`)).result, 'b')
    assert.equal(await mill.job(`mail#${noData.id}`), null)
    assert.deepEqual(await redis.lrange(`${prefix}:mail:active`, 0, -1), [])
  })

  // X067
  test('of a queue with a slash are jobs of the type with a colon', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('mail/urgent')
    const plain = await foreign.add('x', { to: 'ann' })
    const urgent = defineJob({ type: 'mail:urgent', payload: Mail, run: ({ payload }) => payload.to })
    const ours = await mill.enqueue(urgent, { to: 'bob' })
    assert.equal((await foreign.getJob(ours.id))?.data.to, 'bob')
    await mill.work([urgent])
    assert.equal((await over(mill, `mail:urgent#${plain.id}`)).result, 'ann')
    assert.equal(await mill.result(ours), 'bob')
  })
})

describe('what a BullMQ program says about a whole queue', { timeout: 300_000 }, () => {
  test('a paused queue is not worked on until it is resumed', async (t) => {
    const { mill, queue } = await besideBullmq(t, {}, 120_000)
    const foreign = queue('mail')
    await foreign.pause()
    const ran: string[] = []
    const mail = defineJob({ type: 'mail', payload: Mail, run: ({ payload }) => void ran.push(payload.to) })
    const other = defineJob({ type: 'other', run: () => 'ran' })
    await mill.work([mail, other], { poll: '2m' })
    const held = await mill.enqueue(mail, { to: 'held' })
    await foreign.add('x', { to: 'held too' })
    const unclaimed = queue('other')
    await unclaimed.pause()
    const still = await unclaimed.add('x', {})
    assert.equal((await mill.counts()).other?.ready, 1)
    await still.remove()
    await unclaimed.resume()
    assert.equal(await mill.result(await mill.enqueue(other, {})), 'ran')
    assert.deepEqual(ran, [])
    assert.equal((await mill.job(held.id))?.state, 'queued')
    const fromMs = Date.now()
    await foreign.resume()
    await over(mill, held.id)
    assert.ok(Date.now() - fromMs < 50_000, 'the resumption was heard, not polled for')
    await until(async () => ran.length === 2)
  })

  test('its global concurrency holds over all our workers, and a free place is taken at once', async (t) => {
    const { mill, queue } = await besideBullmq(t, {}, 120_000)
    const foreign = queue('mail')
    await foreign.setGlobalConcurrency(2)
    let [running, most, done] = [0, 0, 0]
    const mail = defineJob({
      type: 'mail',
      run: async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setTimeout(resolve, 10))
        running -= 1
        done += 1
      },
    })
    await mill.work([mail], { concurrency: 8, poll: '2m' })
    await mill.work([mail], { concurrency: 8, poll: '2m' })
    await foreign.addBulk(Array.from({ length: 20 }, () => ({ name: 'x', data: {} })))
    // A worker that polled for a free slot would not make it within this minute.
    await until(async () => done === 20)
    assert.equal(most, 2)
  })

  test('its global rate limit holds', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('mail')
    await foreign.setGlobalRateLimit(3, 500)
    const mail = defineJob({ type: 'mail', run: () => {} })
    await mill.work([mail], { concurrency: 8 })
    await foreign.addBulk(Array.from({ length: 7 }, () => ({ name: 'x', data: {} })))
    await until(async () => (await foreign.getJobCounts('completed')).completed === 7)
    // When Redis handed each out: its handler may start later. A window begins with the first claim after the last one.
    const claimedMs = (await foreign.getJobs(['completed'])).map(({ processedOn = 0 }) => processedOn)
    const windows: number[][] = []
    for (const ms of claimedMs.toSorted((one, other) => one - other)) {
      const window = windows.at(-1)
      if (window?.[0] !== undefined && ms < window[0] + 500) window.push(ms)
      else windows.push([ms])
    }
    assert.equal(windows.flat().length, 7)
    assert.ok(
      windows.every(({ length }) => length <= 3),
      JSON.stringify(windows),
    )
  })
})
