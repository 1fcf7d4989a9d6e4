import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from '@platformatic/kafka'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { RangeReader } from '../../src/engines/kafka/range-reader.ts'
import { systemClock } from '../../src/time/clock.ts'
import { endOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { ann, stageDesk } from './desk-stage.ts'
import { eventually } from './kafka-fixtures.ts'

const WRITTEN: readonly (readonly [string, string | null])[] = [
  ['route', 'first'],
  ['route', 'second'],
  ['nothing', null],
  ['empty', ''],
]

async function produceWithHeaders(server: KafkaServer, topic: string): Promise<void> {
  const producer = new client.Producer({ clientId: 'plain', bootstrapBrokers: [server.address] })
  const headers = new Map<Buffer, Buffer | null>()
  for (const [name, value] of WRITTEN) headers.set(Buffer.from(name), value === null ? null : Buffer.from(value))
  try {
    // The client writes null, which its types do not know.
    const message = { topic, value: Buffer.from('{"n":1}'), headers: headers as Map<Buffer, Buffer> }
    await producer.send({ messages: [message], acks: -1 })
  } finally {
    await producer.close()
  }
}

async function headersAt(server: KafkaServer, topic: string, offset: bigint) {
  const reader = new RangeReader(client, parseUrl(server.url), systemClock)
  try {
    const [record] = await reader.read({ topic, partition: 0 }, { from: offset, to: offset + 1n, max: 1 })
    return [...(record?.headers ?? [])].map(([name, value]) => [name, value?.toString() ?? null])
  } finally {
    await reader.close()
  }
}

test('headers of the same name and null headers survive death and a replay', async (t) => {
  const server = await kafkaServer()
  const stage = await stageDesk(t, server)
  const { topic, dlq } = stage
  await produceWithHeaders(server, topic)
  assert.deepEqual(await headersAt(server, topic, 0n), WRITTEN)
  const mill = await stage.work(() => Promise.reject(new Error('no')))
  await eventually(async () => (await mill.counts())[topic]?.dead === 1, 'the dead letter')
  await mill.close()
  assert.deepEqual((await headersAt(server, dlq, 0n)).slice(0, WRITTEN.length), WRITTEN)
  const desk = await stage.openDesk()
  await desk.replay({ topic, offset: 0 }, ann)
  assert.deepEqual(await endOffsets(server, topic), [2n])
  const replayed = await headersAt(server, topic, 1n)
  assert.deepEqual(replayed.slice(0, WRITTEN.length), WRITTEN)
  const names = replayed.slice(WRITTEN.length).map(([name]) => name)
  assert.deepEqual(names.length, new Set(names).size, 'ours are there once')
})
