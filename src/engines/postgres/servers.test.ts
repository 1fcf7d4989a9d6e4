import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { freePort } from '../../../test/servers/free-port.ts'
import { query, schemaUrl, startPostgres } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate, threadUrlOf } from './module.ts'
import { parseUrl } from './options.ts'
import { Servers } from './servers.ts'

test('a URL with several hosts has a connection string for each, with the same login, database and parameters', () => {
  const { servers, schema } = parseUrl('postgres://ann:p%40ss@a:5432,b,[::1]:5433/shop?schema=s&sslmode=disable')
  assert.deepEqual(servers, [
    'postgres://ann:p%40ss@a:5432/shop?sslmode=disable',
    'postgres://ann:p%40ss@b/shop?sslmode=disable',
    'postgres://ann:p%40ss@[::1]:5433/shop?sslmode=disable',
  ])
  assert.equal(schema, 's')
  assert.deepEqual(parseUrl('postgres:///shop').servers, ['postgres:///shop'])
})

test('the renewal thread gets all hosts', () => {
  const url = new URL(threadUrlOf('postgres://ann@a:1,b:2/shop?schema=s', 30_000).replace(',b:2', ''))
  assert.deepEqual([url.host, url.searchParams.get('schema'), url.searchParams.get('pool')], ['a:1', 's', '1'])
})

test('an invalid host, hosts in a parameter and a wish for a standby are refused', () => {
  const refused = (url: string, message: RegExp) =>
    assert.throws(() => parseUrl(url), { code: 'ERR_ENGINE_URL', message })
  refused('postgres://ann@a:1,b:two/shop', /names 'b:two', which is not a host/)
  refused('postgres://ann@a:1,/shop', /names '', which is not a host/)
  refused('postgres:///shop?host=a,b', /several hosts in a parameter/)
  refused('postgres://a,b/shop?target_session_attrs=standby', /jobs are written/)
})

test('of several connections that fail at the same time only the first moves on to the next server', async () => {
  const servers = new Servers(['a', 'b', 'c'])
  servers.leave('a')
  servers.leave('a')
  assert.equal(servers.current, 'b')
  const tried: string[] = []
  const fail = async (): Promise<never> => {
    tried.push(servers.current)
    servers.leave(servers.current)
    throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  }
  await assert.rejects(servers.reach(fail), /refused/)
  assert.deepEqual(tried, ['b', 'c', 'a'])
})

describe('a primary and its standby', async () => {
  const primary = await startPostgres()
  after(() => primary.stop())
  const standby = await startPostgres([`standby-of=${primary.data}`])
  after(() => standby.stop())
  const { url } = schemaUrl(primary)
  const settings = { clock: systemClock, migrate: false }
  await migrate(url, settings)
  const hosts = (...of: readonly string[]): string => url.replace(new URL(url).host, of.join(','))
  const [first, second] = [primary, standby].map((server) => new URL(server.url).host)

  test('the primary is found behind an unreachable server and a standby', async (t) => {
    const away = `127.0.0.1:${await freePort()}`
    const engine = await openEngine(hosts(away, String(second), String(first)), settings)
    t.after(() => engine.close())
    assert.equal((await engine.enqueue([newJob({ type: 'other' })]))[0]?.status, 'enqueued')
  })

  test('standbys alone are refused', async () => {
    await assert.rejects(openEngine(hosts(String(second), String(second)), settings), { code: 'ERR_STORAGE_READONLY' })
  })

  test('an open engine follows the primary when a standby is promoted', async (t) => {
    const engine = await openEngine(hosts(String(first), String(second)), settings)
    t.after(() => engine.close())
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 30_000 }], worker: 'w:1:a' })
    await primary.kill()
    await query(standby.url, 'select pg_promote()')
    const job = newJob({ type: 'greet' })
    const signal = new AbortController().signal
    const claiming = consumer.claim({ max: 1, waitMs: 30_000, signal })
    const [receipt] = await engine.enqueue([job])
    const leases = await claiming.catch(() => consumer.claim({ max: 1, waitMs: 30_000, signal }))
    assert.deepEqual(
      leases.map((lease) => lease.job.id),
      [receipt?.id],
    )
  })
})
