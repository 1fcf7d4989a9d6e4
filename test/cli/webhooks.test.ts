import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openWebhooks } from '../../workloads/webhooks/index.ts'
import { status, webhookReceiver } from '../fixtures/webhook-receiver.ts'
import { runCli } from './in-process.ts'
import { jsonLines, MAIN, Running, temporaryFolder, until } from './run.ts'

test('millrace webhooks adds, lists, shows, tests, disables, enables and rotates endpoints', async (t) => {
  await using receiver = await webhookReceiver()
  const engine = ['--engine', `sqlite:${join(await temporaryFolder(t), 'cli.db')}`]
  const run = (...args: readonly string[]) => runCli(['webhooks', ...args, ...engine])
  const json = async (...args: readonly string[]) => jsonLines((await run(...args, '--json')).out)
  const missing = await run('list')
  assert.deepEqual([missing.code, /there is no file/.test(missing.err)], [1, true])
  const allow = ['--allow', receiver.origin]
  const added = await run('add', `${receiver.origin}/hooks`, '--events', 'order.*', 'user.created', ...allow)
  assert.equal(added.code, 0)
  const secret = /whsec_\S+/.exec(added.out)?.[0] ?? assert.fail('no secret was printed')
  assert.match(added.out, /not shown again/)
  const [listed] = await json('list')
  assert.deepEqual([listed?.events, listed?.isEnabled], [['order.*', 'user.created'], true])
  const id = String(listed?.id)
  for (const args of [['list'], ['list', '--json'], ['show', id], ['show', id, '--json'], ['disable', id, '--json']]) {
    const { code, out } = await run(...args)
    assert.deepEqual([code, out.includes(secret.slice(6)), out.includes(id)], [0, false, true], args.join(' '))
  }
  assert.match((await run('show', id)).out, /disabled since .*: disabled by hand/)
  assert.match((await run('enable', id)).out, /Enabled/)
  const tested = await run('test', id, ...allow)
  assert.match(tested.out, /^Delivered: status 200 after \d+(?: ms|s)\b/)
  assert.equal(receiver.requests[0]?.headers['x-webhook-id'], id)
  receiver.answer(status(500))
  const failed = await run('test', id, ...allow, '--json')
  assert.deepEqual([failed.code, jsonLines(failed.out)[0]?.statusCode], [1, 500])
  const [rotated] = await json('rotate', id, '--keep', '1h')
  assert.notEqual(rotated?.secret, secret)
  const refused: readonly (readonly [number, readonly string[]])[] = [
    [2, ['add', 'http://10.0.0.1/']],
    [2, ['add', 'https://localhost/']],
    [2, ['add', 'https://example.com/', '--workspace', 'eu']],
    [2, ['add', 'https://example.com/', '--events', 'a b']],
    [1, ['show', 'unknown']],
    [1, ['redeliver', 'unknown']],
    [2, ['deliveries', '--status', 'odd']],
  ]
  for (const [code, args] of refused) assert.equal((await run(...args)).code, code, args.join(' '))
  assert.equal((await run('deliveries')).out, 'No deliveries.\n')
})

test('start --preset webhooks delivers what is published, and serves its page', async (t) => {
  await using receiver = await webhookReceiver()
  const folder = await temporaryFolder(t)
  const engine = `sqlite:${join(folder, 'preset.db')}`
  const config = join(folder, 'webhooks.json')
  writeFileSync(
    config,
    JSON.stringify({ allow: [receiver.origin], userAgent: 'Acme/1', limiter: null, retention: '7d' }),
  )
  const args = ['start', '--preset', 'webhooks', '--engine', engine, '--config', config, '--port', '0', '--json']
  const running = new Running(MAIN, args, {})
  t.after(() => running.child.kill('SIGKILL'))
  await running.said('To try it')
  const webhooks = await openWebhooks({ engine, allow: [receiver.origin] })
  t.after(() => webhooks.close())
  await webhooks.endpoints.add({ url: `${receiver.origin}/hooks` })
  const { deliveries } = await webhooks.publish('order.paid', { total: 7 })
  const [published] = deliveries
  assert.ok(published)
  await until(async () => (await webhooks.deliveries()).length === 1)
  assert.equal(receiver.requests[0]?.headers['user-agent'], 'Acme/1')
  const url = /"url":"([^"]+)"/.exec(running.output)?.[1]
  const session = await (await fetch(`${url}/api/v1/session`)).json()
  assert.equal(Object(session).facets.webhooks, true)
  const answer = await (await fetch(`${url}/api/v1/webhook-deliveries`)).json()
  assert.deepEqual(
    Object(answer).deliveries.map(({ deliveryId }: { deliveryId: string }) => deliveryId),
    [published.deliveryId],
  )
  const again = await runCli(['webhooks', 'redeliver', published.deliveryId, '--engine', engine])
  assert.match(again.out, /^Enqueued delivery .* again as job/)
  await until(async () => (await webhooks.deliveries()).length === 2)
  const listed = await runCli(['webhooks', 'deliveries', '--engine', engine, '--status', 'success'])
  assert.match(listed.out, /order\.paid\s+success\s+200/)
  const scrape = async () => (await fetch(`${url}/metrics`)).text()
  // A delivery is counted after it was recorded.
  await until(async () =>
    /^millrace_webhook_deliveries_total\{outcome="delivered",engine="sqlite"\} 2$/m.test(await scrape()),
  )
  assert.match(await scrape(), /^millrace_webhook_latency_seconds_count\{engine="sqlite"\} 2$/m)
  assert.match(await scrape(), /^millrace_webhook_disabled_total\{engine="sqlite"\} 0$/m)
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
})

test('a wrong configuration of the preset is refused, and nothing is created', async (t) => {
  const folder = await temporaryFolder(t)
  const cases: readonly (readonly [string, RegExp])[] = [
    ['{"allow":["127.0.0.1"]}', /'allow' has/],
    ['{"alow":[]}', /alow/],
    ['{"limiter":{"max":0,"duration":1}}', /limiter\.max/],
    ['{"retention":"soon"}', /retention/],
    ['nonsense', /is not JSON/],
  ]
  const config = join(folder, 'webhooks.json')
  for (const [text, message] of cases) {
    writeFileSync(config, text)
    const engine = `sqlite:${join(folder, 'none.db')}`
    const { code, err } = await runCli(['start', '--preset', 'webhooks', '--engine', engine, '--config', config])
    assert.equal(code, 2, text)
    assert.match(err, message)
  }
})
