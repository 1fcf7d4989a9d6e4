import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate, threadUrlOf } from '../../src/engines/postgres/module.ts'
import { parseUrl } from '../../src/engines/postgres/options.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { tcpProxy } from '../fixtures/tcp-proxy.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'

test('a renewal waits for an answer far shorter than other calls, and never longer', () => {
  const timeoutOf = (url: string): string | null => {
    const threadUrl = threadUrlOf(url, parseUrl(url).answerMs)
    return new URL(threadUrl).searchParams.get('timeout')
  }
  assert.equal(timeoutOf('postgres://localhost/x'), '5000')
  assert.equal(timeoutOf('postgres://localhost/x?timeout=900'), '900')
})

test('a lease outlives the silent death of the connection that renews it', { timeout: 180_000 }, async (t) => {
  const { url, schema } = schemaUrl(await postgresServer())
  await migrate(url, { clock: systemClock, migrate: true })
  t.after(() => dropSchema(url, schema))
  const proxy = await tcpProxy(t, url)
  const mill = await open(`${proxy.url}&prepare=false`)
  t.after(() => mill.close())
  const starts: number[] = []
  const long = defineJob({
    type: 'long',
    lease: '24s',
    async run({ job: { attempt }, signal }) {
      starts.push(attempt)
      await systemClock.sleep(27_000, signal)
      return 'done'
    },
  })
  await mill.work([long], { reap: '500ms' })
  // The first renewal gets no answer; the lease would end sixteen seconds later, and it is waited for five.
  proxy.freezeAt('FOR NO KEY UPDATE OF job SKIP LOCKED', 'sees nothing')
  assert.equal(await mill.result(await mill.enqueue(long, null), { timeout: '150s' }), 'done')
  assert.equal(proxy.frozen, 1)
  assert.deepEqual(starts, [1])
})
