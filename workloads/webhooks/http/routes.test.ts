import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Admin, createAdmin } from '../../../src/http/index.ts'
import { WORKLOAD_PLACES, type WorkloadPlace } from '../../../test/fixtures/workload-places.ts'
import { openWebhooks, type Webhooks, webhookRoutes } from '../index.ts'

const TOKENS = { viewer: 'v'.repeat(40), operator: 'o'.repeat(40) } as const
const HOST = '127.0.0.1:9999'

let place: WorkloadPlace
let webhooks: Webhooks
let admin: Admin
let id: string
let secret: string
before(async () => {
  place = await WORKLOAD_PLACES[0].makePlace()
  webhooks = await openWebhooks({ engine: place.url })
  ;({ id, secret } = await webhooks.endpoints.add({ url: 'https://receiver.example/path-token?query=token' }))
  const tokens = (['viewer', 'operator'] as const).map((role) => ({ who: role, role, token: TOKENS[role] }))
  admin = createAdmin(webhooks.mill, { routes: webhookRoutes(webhooks), pages: ['webhooks'], tokens })
})
after(async () => {
  await admin.close()
  await webhooks.close()
  await place.remove()
})

async function call(role: keyof typeof TOKENS, path: string, method = 'GET') {
  const headers = { host: HOST, authorization: `Bearer ${TOKENS[role]}`, 'content-type': 'application/json' }
  const body = method === 'POST' ? { body: '{}' } : {}
  const response = await admin.fetch(new Request(`http://${HOST}/api/v1/${path}`, { method, headers, ...body }))
  return { status: response.status, text: await response.text() }
}

test('endpoints are shown without secrets and without the paths of their URLs', async () => {
  for (const role of ['viewer', 'operator'] as const) {
    const { status, text } = await call(role, 'webhooks')
    assert.equal(status, 200)
    assert.match(text, /"origin":"https:\/\/receiver.example"/)
    for (const hidden of ['token', secret]) assert.equal(text.includes(hidden), false, hidden)
  }
})

test('a viewer changes nothing and sends nothing', async () => {
  const { deliveries } = await webhooks.publish('order.paid', 1)
  const acts = ['enable', 'disable', 'test'].map((act) => `webhooks/${id}/${act}`)
  for (const path of [...acts, `webhook-deliveries/${deliveries[0]?.deliveryId}/redeliver`]) {
    assert.equal((await call('viewer', path, 'POST')).status, 403, path)
  }
  assert.equal((await webhooks.endpoints.show(id)).isEnabled, true)
  assert.equal((await webhooks.mill.jobs()).length, 1)
})

test('an unknown endpoint or delivery is not found, and says so', async () => {
  const acts = ['enable', 'disable', 'test'].map((act) => `webhooks/nope/${act}`)
  for (const path of [...acts, 'webhook-deliveries/nope/redeliver']) {
    const { status, text } = await call('operator', path, 'POST')
    assert.deepEqual([status, JSON.parse(text).code], [404, 'ERR_RECORD_UNKNOWN'], path)
    assert.match(text, /has the id 'nope'; see millrace webhooks/)
  }
})
