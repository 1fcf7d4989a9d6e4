import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import { freshPrefix, redisServer } from '../../../test/servers/redis.ts'
import { stopName } from '../../engine/pauses.ts'
import { openPresence } from './presence.ts'

const { url } = await redisServer()
const redis = new Redis(url)
after(() => redis.disconnect())

test('pauses beside the heartbeats are seen by every presence of the prefix, the first stays, and one resume succeeds', async () => {
  const prefix = freshPrefix()
  const [here, there] = [await openPresence(url, { prefix }), await openPresence(redis, { prefix })]
  try {
    assert.deepEqual(await here.pauses.list(), [])
    const [ann, bob] = [
      { who: 'ann', reason: 'the provider is "down"' },
      { who: 'bob', reason: '' },
    ]
    const paused = await Promise.all([here.pauses.pause('sms', bob), there.pauses.pause('sms', bob)])
    assert.deepEqual(paused.sort(), [false, true])
    assert.equal(await there.pauses.pause('mail', ann), true)
    assert.equal(await here.pauses.pause('mail', bob), false)
    const listed = await here.pauses.list()
    assert.deepEqual(
      listed.map(({ sinceMs: _, ...rest }) => rest),
      [
        { type: 'mail', ...ann },
        { type: 'sms', ...bob },
      ],
    )
    const [seconds] = await redis.time()
    for (const { sinceMs } of listed) assert.ok(Math.abs(sinceMs - Number(seconds) * 1_000) < 60_000, `${sinceMs}`)
    const resumed = await Promise.all([here.pauses.resume('mail'), there.pauses.resume('mail')])
    assert.deepEqual(resumed.sort(), [false, true])
    assert.deepEqual(
      (await there.pauses.list()).map(({ type }) => type),
      ['sms'],
    )
    // A worker that is asked to stop is no paused type.
    const asked = stopName('worker', 7)
    assert.equal(await here.pauses.pause(asked, ann), true)
    assert.deepEqual(
      [await there.pauses.list(), await there.pauses.all()].map((found) => found.map(({ type }) => type)),
      [['sms'], ['sms', asked]],
    )
    assert.equal(await there.pauses.resume(asked), true)
    await here.pauses.resume('sms')
  } finally {
    await here.close()
  }
})
