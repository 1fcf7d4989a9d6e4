/** Every peer of the Kafka family delivers what it was given. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { withAdmin } from '../test/servers/kafka.ts'
import { CONTENDERS } from './contenders/index.ts'
import { newPlace, placeWithin, removePlace } from './place.ts'
import { addressOf, topicOf } from './servers/kafka.ts'
import { type Server, startKafkaBroker } from './servers/start.ts'
import { assertSound, run } from './testing/trial.ts'

const PEERS = CONTENDERS.filter(({ family }) => family === 'kafka')

describe('the Kafka family', { concurrency: 2 }, () => {
  let server: Server
  before(async () => {
    server = await startKafkaBroker()
  })
  after(() => server.stop())

  for (const entry of PEERS) {
    test(`finds every delivery of ${entry.name}`, { timeout: 600_000 }, async () => {
      const { results } = await run({ scenarios: ['drain', 'records', 'pickup'], contenders: [entry], server })
      assertSound(results)
    })
  }

  test('a place has a topic of its own, which goes with it and with all that lay within', async () => {
    const place = await newPlace(tmpdir(), server.url)
    const within = await placeWithin(place)
    const other = await newPlace(tmpdir(), server.url)
    const [first = '', second = '', third = ''] = [place, within, other].map(({ url }) => topicOf(String(url)))
    const topics = () => withAdmin({ address: addressOf(server.url) }, (admin) => admin.listTopics())
    for (const topic of [first, second, third]) assert.ok((await topics()).includes(topic), topic)
    await removePlace(place)
    const left = await topics()
    assert.deepEqual(
      [first, second, third].map((topic) => left.includes(topic)),
      [false, false, true],
    )
    await removePlace(other)
  })
})
