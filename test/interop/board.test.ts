/** bull-board, which knows nothing of us, on our queues. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import type { Queue } from 'bullmq'
import { defineJob } from 'millrace'
import { z } from 'zod'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

interface App {
  use(path: string, router: unknown): void
  listen(port: number, host: string, done: () => void): { address(): AddressInfo; close(): void }
}

type BoardAdapter = Parameters<typeof createBullBoard>[0]['serverAdapter'] & {
  setBasePath(path: string): unknown
  getRouter(): unknown
}

const require = createRequire(import.meta.url)
/** Its types are not installed. */
const express: () => App = require('express')
/** Its types are those of a copy of the board that it brings along, which the compiler takes for another board. */
const { ExpressAdapter }: { readonly ExpressAdapter: new () => BoardAdapter } = require('@bull-board/express')

const Listed = z.object({
  queues: z.array(
    z.object({
      name: z.string(),
      counts: z.record(z.string(), z.number()),
      jobs: z.array(z.object({ id: z.string(), failedReason: z.string().optional() })),
    }),
  ),
})
const Details = z.object({ job: z.record(z.string(), z.unknown()), status: z.string() })

async function board(t: { after(run: () => void): void }, queues: readonly Queue[]): Promise<string> {
  const serverAdapter = new ExpressAdapter()
  serverAdapter.setBasePath('/board')
  createBullBoard({ queues: queues.map((queue) => new BullMQAdapter(queue)), serverAdapter })
  const app = express()
  app.use('/board', serverAdapter.getRouter())
  const server = await new Promise<ReturnType<App['listen']>>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  t.after(() => server.close())
  return `http://127.0.0.1:${server.address().port}/board/api`
}

describe('bull-board', { timeout: 300_000 }, () => {
  test('lists our queues with their counts, shows a job, and its retry button works', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    let isDown = true
    const mail = defineJob({
      type: 'mail:out',
      payload: z.string(),
      attempts: 2,
      backoff: { kind: 'fixed', delay: 1 },
      run: async ({ payload, progress }) => {
        await progress(40)
        if (payload === 'bad' && isDown) throw new Error('no such box')
        return 'sent'
      },
    })
    await mill.work([mail])
    const [good, bad] = [await mill.enqueue(mail, 'good'), await mill.enqueue(mail, 'bad')]
    const later = await mill.enqueue(mail, 'later', { delay: '1h', priority: 2 })
    await over(mill, good.id)
    await over(mill, bad.id)

    const url = await board(t, [queue('mail/out')])
    const name = encodeURIComponent('mail/out')
    const read = async (path: string): Promise<unknown> => (await fetch(`${url}${path}`)).json()
    const failed = Listed.parse(await read(`/queues?activeQueue=${name}&status=failed&page=1`))
    const [shown] = failed.queues
    assert.equal(shown?.name, 'mail/out')
    const { completed, failed: dead, delayed, active, waiting } = shown?.counts ?? {}
    assert.deepEqual(
      { completed, dead, delayed, active, waiting },
      { completed: 1, dead: 1, delayed: 1, active: 0, waiting: 0 },
    )
    assert.deepEqual(
      shown?.jobs.map(({ id, failedReason }) => [id, failedReason]),
      [[bad.id, 'no such box']],
    )
    const details = Details.parse(await read(`/queues/${name}/${good.id}`))
    assert.equal(details.status, 'completed')
    assert.deepEqual(
      [details.job.name, details.job.data, details.job.returnValue, details.job.progress, details.job.attempts],
      ['mail:out', 'good', 'sent', 40, 1],
    )
    const logs = z.array(z.string()).parse(await read(`/queues/${name}/${bad.id}/logs`))
    assert.ok(logs.length > 0 && logs.every((line) => 'event' in JSON.parse(line.slice(line.indexOf('{')))))

    isDown = false
    assert.equal((await fetch(`${url}/queues/${name}/${bad.id}/retry`, { method: 'PUT' })).ok, true)
    await until(async () => (await mill.job(bad.id))?.state === 'completed')
    assert.equal((await fetch(`${url}/queues/${name}/${later.id}/promote`, { method: 'PUT' })).ok, true)
    assert.equal((await over(mill, later.id)).result, 'sent')
    assert.equal((await fetch(`${url}/queues/${name}/${good.id}/clean`, { method: 'PUT' })).ok, true)
    assert.equal(await mill.job(good.id), null)
  })
})
