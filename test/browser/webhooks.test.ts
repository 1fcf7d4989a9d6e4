import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { drain } from 'millrace/testing'
import { openWebhooks } from 'millrace/workloads/webhooks'
import { webhookRoutes } from '../../workloads/webhooks/http/routes.ts'
import { status, webhookReceiver } from '../fixtures/webhook-receiver.ts'
import { seriousFaults } from './axe.ts'
import { PHONE } from './browser.ts'
import { MARKUP } from './full-scene.ts'
import { type ServeOptions, useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

async function scene(t: TestContext, options: Pick<ServeOptions, 'tokens'> = {}) {
  const receiver = await webhookReceiver()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-browser-'))
  const engine = `sqlite:${join(folder, 'webhooks.db')}`
  const webhooks = await openWebhooks({ engine, allow: [receiver.origin], limiter: null })
  const good = await webhooks.endpoints.add({
    ...{ url: `${receiver.origin}/hooks/T0KEN`, events: ['order.*', 'user.created'], description: 'Shop' },
  })
  const bad = await webhooks.endpoints.add({
    ...{ url: `${receiver.origin}/broken`, events: ['order.paid'], maxFailures: 1, description: MARKUP },
  })
  receiver.answer((response, { url }) => status(url === '/broken' ? 404 : 200)(response, Object({})))
  for (let n = 0; n < 3; n += 1) {
    await webhooks.publish('order.paid', { n })
    await drain(webhooks.mill, webhooks.jobs)
  }
  const remove = async (): Promise<void> => {
    await webhooks.close()
    await receiver.close()
    rmSync(folder, { recursive: true, force: true })
  }
  const served = await serve(t, {
    ...{ jobs: webhooks.jobs, store: { url: engine, remove } },
    ...{ routes: webhookRoutes(webhooks), pages: ['webhooks'] },
    ...options,
  })
  return { ...served, receiver, webhooks, good, bad }
}

test('the page of webhooks shows endpoints and deliveries, and acts on them', async (t) => {
  const { visit, webhooks, receiver, good } = await scene(t)
  const page = await visit()
  await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click()
  await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor()
  const endpoints = page.getByRole('table', { name: 'Endpoints' })
  await endpoints.getByRole('row', { name: /Shop/ }).getByText('Enabled').waitFor()
  await endpoints.getByText('Failed too often').waitFor()
  await endpoints.getByText(MARKUP).waitFor()
  // Neither secrets nor the path of a URL, which is often a secret too.
  const text = (await page.locator('main').textContent()) ?? ''
  assert.doesNotMatch(text, /T0KEN|whsec_/)
  const deliveries = page.getByRole('table', { name: 'Recent deliveries' })
  assert.equal(await deliveries.getByText('Delivered').count(), 3)
  // Why one failed, and not only under a pointer.
  await deliveries.getByText(/answered with status 404/).waitFor()
  // Nothing was delivered there, so no latency is known.
  await endpoints
    .getByRole('row', { name: /Failed too often/ })
    .getByRole('cell', { name: '–', exact: true })
    .waitFor()
  await page.getByRole('button', { name: 'Test Shop' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send test' }).click()
  await page.getByText(/Status 200 after .*: Shop/).waitFor()
  assert.equal(receiver.requests.at(-1)?.url, '/hooks/T0KEN')
  await page.getByRole('button', { name: 'Disable Shop' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('moving')
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
  await page.getByRole('button', { name: 'Enable Shop' }).waitFor()
  assert.equal((await webhooks.endpoints.show(good.id)).disabledReason, 'moving')
  await endpoints.getByText('“moving”').waitFor()
  await page.getByRole('button', { name: 'Enable Shop' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Enable' }).click()
  await page.getByRole('button', { name: 'Disable Shop' }).waitFor()
  const sent = receiver.requests.length
  await page
    .getByRole('button', { name: /^Redeliver order.paid/ })
    .first()
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Redeliver' }).click()
  await page.getByText('Enqueued again: order.paid').waitFor()
  await drain(webhooks.mill, webhooks.jobs)
  assert.equal(receiver.requests.length, sent + 1)
  await endpoints.getByRole('link', { name: 'Shop' }).click()
  await endpoints.getByText('(shown below)').waitFor()
  await page.goto(`${page.url().split('#')[0]}#/audit`)
  await page.getByText('redelivered webhook').first().waitFor()
})

test('the page of webhooks is accessible, fits a phone, and its buttons are for operators', async (t) => {
  const token = 'a-token-of-a-viewer'
  const { visit, url } = await scene(t)
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await visit('webhooks', { colorScheme, reducedMotion: 'reduce' })
    await page.getByRole('table', { name: 'Recent deliveries' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
  }
  const phone = await visit('webhooks', { viewport: PHONE, hasTouch: true, isMobile: true })
  await phone.getByRole('table', { name: 'Recent deliveries' }).waitFor()
  assert.ok((await phone.evaluate<number>('document.documentElement.scrollWidth')) <= PHONE.width)
  // Every column is in view beside the navigation, the actions too.
  const narrow = await visit('webhooks', { viewport: { width: 1024, height: 800 } })
  await narrow.getByRole('table', { name: 'Recent deliveries' }).waitFor()
  const hidden = await narrow.evaluate<readonly number[]>(
    '[...document.querySelectorAll(".table-frame")].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)',
  )
  assert.deepEqual(hidden, [0, 0])
  const others = await scene(t, { tokens: [{ role: 'viewer', who: 'val', token }] })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const list = await fetch(`${others.url}/api/v1/webhooks`, { headers })
  assert.equal(list.status, 200)
  const disabled = await fetch(`${others.url}/api/v1/webhooks/${others.good.id}/disable`, {
    method: 'POST',
    headers,
    body: '{}',
  })
  assert.equal(disabled.status, 403)
  assert.notEqual(url, others.url)
})

test('without webhooks there is no such page', async (t) => {
  const { visit } = await serve(t, { jobs: [] })
  const page = await visit('webhooks')
  await page.getByRole('heading', { name: 'No webhooks here' }).waitFor()
  assert.equal(await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).count(), 0)
})
