import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dropPrefix, prefixUrl, redisServer } from '../../../test/servers/redis.ts'
import { open } from '../../client/mill.ts'
import { defineJob } from '../../job/definition.ts'

test('a job with removeOnComplete that others come after goes with the last of them', {
  timeout: 60_000,
}, async (t) => {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const mill = await open(url)
  t.after(async () => {
    await mill.close()
    await dropPrefix(server.url, prefix)
  })
  const last = Promise.withResolvers<void>()
  const first = defineJob({ type: 'first', removeOnComplete: true, run: () => 'kept' })
  const next = defineJob({
    type: 'next',
    run: async ({ payload, after }) => {
      if (payload === 2) await last.promise
      return after[0]?.result
    },
  })
  const { id } = await mill.enqueue(first, {})
  const followers = [await mill.enqueue(next, 1, { after: id }), await mill.enqueue(next, 2, { after: id })]
  await mill.work([first, next])
  assert.equal(await mill.result(String(followers[0]?.id)), 'kept')
  assert.equal((await mill.job(id))?.state, 'completed', 'the other one may still ask for its result')
  last.resolve()
  assert.equal(await mill.result(String(followers[1]?.id)), 'kept')
  assert.equal(await mill.job(id), null)
  assert.equal((await mill.counts()).first?.completed ?? 0, 0)
})
