import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { systemClock } from '../../time/clock.ts'
import type { Queries } from './database.ts'
import type { PgQuery } from './driver.ts'
import { namesIn } from './names.ts'
import { type ListenConnection, NotifyChannel } from './wakeups.ts'

/** A connection whose LISTEN succeeds, and that hears what `hears` lets through. */
class FakeClient extends EventEmitter {
  readonly asked: string[] = []

  async query({ text }: PgQuery) {
    this.asked.push(text)
    return { rows: [], rowCount: 0 }
  }

  async end(): Promise<void> {}
}

test('a connection that listens and hears nothing is given up for a new one, and meanwhile nothing is missed', async (t) => {
  const names = namesIn('x')
  const connections: FakeClient[] = []
  let closed = 0
  const heard: string[] = []
  // What is notified comes to the second connection only: a pooler took the first one.
  const queries: Queries = {
    rows: async (_statement, channel, payload) => {
      connections[1]?.emit('notification', { channel, payload })
      return []
    },
    lists: async () => [],
    script: async () => {},
  }
  const channel = new NotifyChannel({
    queries,
    names,
    connect: async (): Promise<ListenConnection> => {
      const client = new FakeClient()
      connections.push(client)
      const close = async (): Promise<void> => {
        closed += 1
      }
      return { client, close }
    },
    onNotification: (notification) => void heard.push(notification),
  })
  t.after(() => channel.close())
  const startedAtMs = systemClock.monotonicMs()
  channel.start()
  while (!channel.isListening) await systemClock.sleep(20)
  // It waits five seconds for an answer; the rest is the machine's.
  assert.ok(systemClock.monotonicMs() - startedAtMs < 60_000)
  assert.deepEqual([connections.length, closed], [2, 1])
  assert.match(connections[0]?.asked[0] ?? '', /^LISTEN "millrace:x"$/)
  assert.deepEqual(heard, ['earlier', 'lost'], 'what was said meanwhile is not looked for')
  await channel.close()
  assert.equal(closed, 2)
})

test('a process that was quiet announces several jobs at once, and then only as often as the rate allows', async () => {
  const channel = new NotifyChannel({
    queries: { rows: async () => [], lists: async () => [], script: async () => {} },
    names: namesIn('x'),
    connect: null,
    onNotification: () => {},
  })
  const startedAtMs = systemClock.monotonicMs()
  let sent = 0
  while (channel.announcement('work') !== null) sent += 1
  const tookMs = systemClock.monotonicMs() - startedAtMs
  assert.ok(sent >= 10, `${sent} at once`)
  assert.ok(sent <= 26 + tookMs / 4, `${sent} in ${tookMs} ms`)
  await systemClock.sleep(15)
  assert.notEqual(channel.announcement('work'), null)
  await channel.close()
  assert.equal(channel.announcement('work'), null)
})
