/** Every contender of the Redis family delivers what it was given, on a server that logs what it acknowledged. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { keysOf, withRedis } from '../test/servers/redis.ts'
import { CONTENDERS } from './contenders/index.ts'
import { newPlace, placeWithin, removePlace } from './place.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { prefixOf } from './servers/redis.ts'
import { type Server, startLoggingRedis } from './servers/start.ts'
import { assertSound, entryOf, run } from './testing/trial.ts'

const PEERS = CONTENDERS.filter(({ family, name }) => family === 'redis' && name !== 'millrace-redis')
const TRIED = ['enqueue', 'drain', 'drain-20k', 'pickup', 'work', 'idle']
/** A peer's own speed is not what is tested here. Real work needs its wake-up, too. */
const TRIED_WITH_PEERS = ['work']

describe('the Redis family', { concurrency: 2 }, () => {
  let server: Server
  before(async () => {
    server = await startLoggingRedis()
  })
  after(() => server.stop())

  // X120
  test(`finds every delivery of Millrace: ${TRIED.join(', ')}`, { timeout: 600_000 }, async () => {
    const { results } = await run({ scenarios: TRIED, contenders: [entryOf('millrace-redis')], server })
    assert.equal(results.length, TRIED.length)
    assertSound(results)
  })

  for (const entry of PEERS) {
    test(`finds every delivery of ${entry.name}`, { timeout: 300_000 }, async () => {
      const { results } = await run({ scenarios: TRIED_WITH_PEERS, contenders: [entry], server })
      assertSound(results)
    })
  }

  test('leaves no scenario of the family untried', () => {
    const all = SCENARIOS.filter((each) => each.families?.includes('redis') ?? true)
    assert.deepEqual(TRIED.toSorted(), all.map((each) => each.name).toSorted())
  })

  test('a place has a prefix of its own, whose keys go with it and with all that lay within', async () => {
    const place = await newPlace(tmpdir(), server.url)
    const within = await placeWithin(place)
    const other = await newPlace(tmpdir(), server.url)
    const prefixes = [place, within, other].map(({ url }) => prefixOf(String(url)))
    assert.equal(new Set(prefixes).size, 3)
    await withRedis(server.url, (redis) => redis.mset(prefixes.flatMap((prefix) => [`${prefix}:bench:id`, '1'])))
    await removePlace(place)
    for (const prefix of prefixes.slice(0, 2)) assert.deepEqual(await keysOf(server.url, prefix), [])
    assert.deepEqual(await keysOf(server.url, String(prefixes[2])), [`${prefixes[2]}:bench:id`])
    await removePlace(other)
  })
})
