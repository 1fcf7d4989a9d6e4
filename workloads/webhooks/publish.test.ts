import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { Client } from 'pg'
import type { SqliteDatabase } from '../../src/engines/sqlite/database.ts'
import { isMillraceError } from '../../src/errors.ts'
import { status } from '../../test/fixtures/webhook-receiver.ts'
import { storeRig } from '../../test/fixtures/webhooks.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'
import { migrateSchema } from '../database/schema.ts'
import { openWebhooks, verifyWebhook, type Webhooks, webhooksSchema } from './index.ts'

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`publishing and endpoints on ${name}`, () => {
    const rig = storeRig(makePlace)

    test('publishing fans out to enabled endpoints of the tenant that want the event', async () => {
      const wants = async (events: readonly string[], tenant?: { orgId: string; workspaceId?: string }) =>
        (await rig.add({ events, ...(tenant !== undefined && { tenant }) })).id
      const all = await wants(['*'])
      const prefix = await wants(['user.*', 'order.*'])
      const exact = await wants(['order.paid'])
      const off = await wants(['order.paid'])
      const others = [await wants(['order.sent']), await wants(['order']), await wants(['orders.*'])]
      const org = await wants(['*'], { orgId: 'acme' })
      const eu = await wants(['*'], { orgId: 'acme', workspaceId: 'eu' })
      const us = await wants(['*'], { orgId: 'acme', workspaceId: 'us' })
      await rig.webhooks.endpoints.disable(off)
      const targets = async (...given: Parameters<Webhooks['publish']>) =>
        (await rig.webhooks.publish(...given)).deliveries.map(({ webhookId }) => webhookId).sort()
      assert.deepEqual(await targets('order.paid', {}), [all, prefix, exact].sort())
      assert.deepEqual((await rig.webhooks.publish('order.paid', {})).disabled, [off])
      assert.deepEqual(await targets('order.paid', {}, { tenant: { orgId: 'acme' } }), [org])
      assert.deepEqual(await targets('x', {}, { tenant: { orgId: 'acme', workspaceId: 'eu' } }), [org, eu].sort())
      assert.deepEqual(await targets('x', {}, { tenant: { orgId: 'other' } }), [])
      assert.equal(others.length + [us].length, 4)
      for (const bad of ['', 'a b', '*', 'order.*', '.a', 'a..b', 'x'.repeat(200)]) {
        await assert.rejects(
          rig.webhooks.publish(bad, {}),
          (error) => isMillraceError(error, 'ERR_OPTION_INVALID'),
          bad,
        )
      }
      await assert.rejects(rig.webhooks.publish('a', {}, { keys: 'x' } as object), /did you mean 'key'/)
      await rig.runDue()
    })

    test('an event that is published twice with one key is delivered once', async () => {
      await rig.add()
      const first = await rig.webhooks.publish('order.paid', 1, { key: 'order-7' })
      await rig.runDue()
      const second = await rig.webhooks.publish('order.paid', 1, { key: 'order-7' })
      assert.deepEqual([first.isDuplicate, second.isDuplicate], [false, true])
      assert.deepEqual(second.deliveries, first.deliveries)
      const racing = await Promise.all([1, 2, 3, 4].map((n) => rig.webhooks.publish('order.paid', n, { key: 'race' })))
      assert.equal(racing.filter(({ isDuplicate }) => !isDuplicate).length, 1)
      await rig.runDue()
      assert.equal(rig.receiver.requests.length, 2)
      await assert.rejects(
        rig.webhooks.publish('order.sent', 1, { key: 'order-7' }),
        /the key was used for the event 'order.paid'/,
      )
      const other = await rig.webhooks.publish('order.paid', 1, { key: 'order-7', tenant: { orgId: 'acme' } })
      assert.equal(other.isDuplicate, false)
    })

    test('publishing in a transaction of the caller commits or vanishes with it', async () => {
      await rig.add()
      for (const ends of ['ROLLBACK', 'COMMIT'] as const) {
        await inOwnTransaction(rig.place.url, ends, (within) =>
          rig.webhooks.publish('order.paid', ends, { within, key: 'mine' }),
        )
        await rig.runDue()
        assert.equal(rig.receiver.requests.length, ends === 'COMMIT' ? 1 : 0)
      }
    })

    test('a refused event leaves its key free, also when the transaction commits', async () => {
      await rig.add()
      await inOwnTransaction(rig.place.url, 'COMMIT', async (within) => {
        const bad = [{ total: 10n }, 'x'.repeat(1_100_000)]
        for (const payload of bad)
          await assert.rejects(rig.webhooks.publish('order.paid', payload, { within, key: 'k' }))
      })
      const { isDuplicate, deliveries } = await rig.webhooks.publish('order.paid', { total: 10 }, { key: 'k' })
      assert.deepEqual([isDuplicate, deliveries.length], [false, 1])
    })

    test('what is received is what was published, whatever its keys and letters are', async () => {
      const { secret } = await rig.add()
      const data = JSON.parse(
        '{"__proto__":{"a":1},"constructor":2,"nul":"\\u0000","half":"\\ud800","e":[{"__proto__":[]}]}',
      )
      await rig.webhooks.publish('order.paid', data)
      await rig.runDue()
      const request = rig.receiver.requests.at(-1) ?? assert.fail('nothing was sent')
      assert.equal(JSON.stringify(JSON.parse(request.body).data), JSON.stringify(data))
      await verifyWebhook(request, secret, { clock: rig.clock })
    })

    test('a job whose ids no store and no header can hold is refused, and others go on', async () => {
      const { id } = await rig.add()
      const job = rig.webhooks.worker.definition
      const good = { webhookId: id, payload: 1 }
      for (const more of [
        { deliveryId: 'a\u0000b' },
        { deliveryId: 'a\nb' },
        { deliveryId: 'é' },
        { webhookId: '\u0000' },
        { event: '\ud800' },
      ]) {
        await assert.rejects(rig.webhooks.mill.enqueue(job, { ...good, ...more }), (error) =>
          isMillraceError(error, 'ERR_PAYLOAD_INVALID'),
        )
      }
      for (const headers of ['x', ['x'], 7]) {
        await assert.rejects(rig.webhooks.publish('order.paid', 1, { headers } as object), /headers/)
      }
    })

    test('endpoints are checked, changed and removed, and never show a secret', async () => {
      const { secret, id } = await rig.add({ events: ['order.*'], description: 'shop', maxFailures: 5 })
      assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      const texts = JSON.stringify([await rig.webhooks.endpoints.list(), await rig.webhooks.endpoints.show(id)])
      assert.equal(texts.includes(secret.slice(6)), false)
      const changed = await rig.webhooks.endpoints.update(id, { events: ['*'], description: 'all' })
      assert.deepEqual([changed.events, changed.description, changed.maxFailures], [['*'], 'all', 5])
      const { url } = await rig.webhooks.endpoints.update(id, { url: ' https://bücher.example/a b ' })
      assert.equal(url, 'https://xn--bcher-kva.example/a%20b', 'as it is requested')
      const refused: readonly (readonly [object, RegExp])[] = [
        [{ url: undefined }, /'url' must be/],
        [{ url: 'https://127.0.0.1/' }, /not public/],
        [{ url: 'http://example.com/' }, /not https/],
        [{ url: 'https://example.com/', events: [] }, /'events'/],
        [{ url: 'https://example.com/', events: ['a*'] }, /'events'/],
        [{ url: 'https://example.com/', maxFailures: 0 }, /'maxFailures'/],
        [{ url: 'https://example.com/', secret: 'whsec_abc' }, /the secret is not/],
        [{ url: 'https://example.com/', enabled: true }, /'enabled' is not an option/],
        [{ url: 'https://example.com/', description: 'a\u0000b' }, /'description'/],
      ]
      for (const [bad, message] of refused) await assert.rejects(rig.add(bad), message, JSON.stringify(bad))
      await assert.rejects(rig.webhooks.endpoints.update(id, { url: 'https://10.0.0.1/' }), /not public/)
      await rig.webhooks.endpoints.remove(id)
      for (const call of [
        () => rig.webhooks.endpoints.show(id),
        () => rig.webhooks.endpoints.update(id, {}),
        () => rig.webhooks.endpoints.enable(id),
        () => rig.webhooks.endpoints.disable(id),
        () => rig.webhooks.endpoints.rotate(id),
        () => rig.webhooks.endpoints.remove(id),
        () => rig.webhooks.test(id),
      ]) {
        await assert.rejects(call, (error) => isMillraceError(error, 'ERR_RECORD_UNKNOWN'))
      }
    })

    test('after a rotation both secrets sign for a day, then the new one alone', async () => {
      const { id, secret: old } = await rig.add()
      const { secret: next } = await rig.webhooks.endpoints.rotate(id)
      const send = async () => {
        await rig.webhooks.publish('order.paid', 1)
        await rig.runDue()
        return rig.receiver.requests.at(-1) ?? assert.fail('nothing was sent')
      }
      const during = await send()
      for (const key of [old, next]) await verifyWebhook(during, key, { clock: rig.clock })
      await rig.clock.advance('24h')
      const afterwards = await send()
      await verifyWebhook(afterwards, next, { clock: rig.clock })
      await assert.rejects(verifyWebhook(afterwards, old, { clock: rig.clock }))
    })

    test('a second rotation within a day keeps what receivers may still verify with', async () => {
      const { id, secret: first } = await rig.add()
      const secrets = [first]
      for (let n = 0; n < 4; n += 1) secrets.push((await rig.webhooks.endpoints.rotate(id)).secret)
      const valid = async () => {
        await rig.webhooks.publish('order.paid', 1)
        await rig.runDue()
        const request = rig.receiver.requests.at(-1) ?? assert.fail('nothing was sent')
        const verified = secrets.map((one) => verifyWebhook(request, one, { clock: rig.clock }))
        return (await Promise.allSettled(verified)).map(({ status: state }) => state === 'fulfilled')
      }
      assert.deepEqual(await valid(), [false, true, true, true, true], 'the newest and three before it')
      secrets.push((await rig.webhooks.endpoints.rotate(id, { keep: '0s' })).secret)
      assert.deepEqual(await valid(), [false, false, false, false, false, true])
    })

    test('a redelivery is another job with the same delivery id, and is sent though the first succeeded', async () => {
      await rig.add()
      const { deliveries } = await rig.webhooks.publish('order.paid', { a: 1 })
      await rig.runDue()
      const [first] = deliveries
      assert.ok(first)
      const again = await rig.webhooks.redeliver(first.deliveryId)
      assert.equal(again.deliveryId, first.deliveryId)
      assert.notEqual(again.jobId, first.jobId)
      await rig.runDue()
      assert.deepEqual(
        new Set(rig.receiver.requests.map(({ headers }) => headers['webhook-id'])),
        new Set([first.deliveryId]),
      )
      assert.equal(new Set(rig.receiver.requests.map(({ body }) => body)).size, 1)
      assert.equal(rig.receiver.requests.length, 2)
      assert.equal((await rig.webhooks.deliveries({ deliveryId: first.deliveryId })).length, 2)
      await assert.rejects(rig.webhooks.redeliver('unknown'), (error) => isMillraceError(error, 'ERR_RECORD_UNKNOWN'))
    })

    test('a test event is signed and sent at once, and its failure is returned', async () => {
      const { id, secret } = await rig.add()
      const sent = await rig.webhooks.test(id)
      assert.deepEqual([sent.success, sent.statusCode, sent.error], [true, 200, null])
      const [request] = rig.receiver.requests
      assert.ok(request)
      const payload = await verifyWebhook(request, secret, { clock: rig.clock })
      assert.equal(Object(payload).type, 'webhook.test')
      rig.receiver.answer(status(500))
      assert.deepEqual((await rig.webhooks.test(id)).statusCode, 500)
      assert.equal((await rig.webhooks.deliveries()).length, 0)
    })

    test('old deliveries and keys are removed, and nothing else', async () => {
      const { id } = await rig.add()
      const record = { webhookId: id, status: 'success', statusCode: 200, latencyMs: 1 } as const
      for (let n = 0; n < 5; n += 1) await rig.webhooks.repository.recordOutcome({ ...record, jobId: `old-${n}` })
      await rig.webhooks.publish('a', 1, { key: 'old' })
      await rig.runDue()
      await rig.clock.advance('31d')
      await rig.webhooks.repository.recordOutcome({ ...record, jobId: 'new' })
      assert.deepEqual(await rig.webhooks.retain(), { deliveries: 6, publications: 1 })
      assert.deepEqual(
        (await rig.webhooks.deliveries()).map(({ jobId }) => jobId),
        ['new'],
      )
      assert.equal((await rig.webhooks.endpoints.show(id)).successCount, 7)
    })

    test('the tables are migrated once, and a database without them is refused', async () => {
      assert.deepEqual(await migrateSchema(rig.tables, webhooksSchema, rig.clock.nowMs()), [])
      await using empty = await makePlace().then((other) => ({ ...other, [Symbol.asyncDispose]: () => other.remove() }))
      await assert.rejects(openWebhooks({ engine: empty.url, migrate: false }), (error) =>
        isMillraceError(error, 'ERR_SCHEMA_MISSING'),
      )
      await assert.rejects(openWebhooks({ engine: 'memory:' }), /cannot be kept on 'memory'/)
    })
  })
}

/** The package brings no types. */
const BetterSqlite: new (path: string) => SqliteDatabase = createRequire(import.meta.url)('better-sqlite3')

test('publishing in a transaction of better-sqlite3 commits or vanishes with it', async () => {
  const place = await WORKLOAD_PLACES[0].makePlace()
  const webhooks = await openWebhooks({ engine: place.url })
  await webhooks.endpoints.add({ url: 'https://receiver.example/hooks' })
  const handle = new BetterSqlite(place.url.slice('sqlite:'.length))
  for (const ends of ['ROLLBACK', 'COMMIT']) {
    handle.exec('BEGIN IMMEDIATE')
    const { deliveries } = await webhooks.publish('order.paid', 1, { within: handle, key: 'mine' })
    handle.exec(ends)
    const job = await webhooks.mill.job(deliveries[0]?.jobId ?? '')
    assert.equal(job?.state, ends === 'COMMIT' ? 'queued' : undefined)
  }
  handle.close()
  await webhooks.close()
  await place.remove()
})

async function inOwnTransaction(
  url: string,
  ends: 'COMMIT' | 'ROLLBACK',
  work: (within: object) => Promise<unknown>,
): Promise<void> {
  if (url.startsWith('sqlite:')) {
    const handle = new DatabaseSync(url.slice('sqlite:'.length))
    handle.exec('BEGIN IMMEDIATE')
    await work(handle)
    handle.exec(ends)
    return handle.close()
  }
  const client = new Client({ connectionString: url.replace(/\?.*$/, '') })
  await client.connect()
  await client.query('BEGIN')
  await work(client)
  await client.query(ends)
  await client.end()
}
