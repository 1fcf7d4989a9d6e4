import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { systemClock } from '../../time/clock.ts'
import type { Queries } from './database.ts'
import type { PgQuery } from './driver.ts'
import { namesIn } from './names.ts'
import { type Ear, Listener } from './wakeups.ts'

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
  const ears: FakeClient[] = []
  let closed = 0
  const heard: string[] = []
  // What is notified comes to the second connection only: a pooler took the first one.
  const queries: Queries = {
    rows: async (_statement, channel, payload) => {
      ears[1]?.emit('notification', { channel, payload })
      return []
    },
    lists: async () => [],
    script: async () => {},
  }
  const listener = new Listener({
    queries,
    names,
    connect: async (): Promise<Ear> => {
      const client = new FakeClient()
      ears.push(client)
      const close = async (): Promise<void> => {
        closed += 1
      }
      return { client, close }
    },
    hear: (tidings) => void heard.push(tidings),
  })
  t.after(() => listener.close())
  const startedAtMs = systemClock.monotonicMs()
  listener.start()
  while (!listener.isHeard) await systemClock.sleep(20)
  // It waits five seconds for an answer; the rest is the machine's.
  assert.ok(systemClock.monotonicMs() - startedAtMs < 60_000)
  assert.deepEqual([ears.length, closed], [2, 1])
  assert.match(ears[0]?.asked[0] ?? '', /^LISTEN "millrace:x"$/)
  assert.deepEqual(heard, ['earlier', 'lost'], 'what was said meanwhile is not looked for')
  await listener.close()
  assert.equal(closed, 2)
})
