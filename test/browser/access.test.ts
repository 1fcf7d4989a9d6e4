/** Logging in and out, roles, read-only links and the users of a proxy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, type Mill } from 'millrace'
import { createAdmin } from 'millrace/http'
import type { Page } from 'playwright-core'
import { listenOn } from '../../src/http/server.ts'
import { seriousFaults } from './axe.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })
const VERA = { token: 'viewer-0123456789abcdef', role: 'viewer', who: 'vera' } as const
const OTTO = { token: 'operator-0123456789abcdef', role: 'operator', who: 'otto' } as const
const TOKENS = [VERA, OTTO]

async function logIn(page: Page, token: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Token' }).fill(token)
  await page.getByRole('button', { name: 'Log in' }).click()
}

const isAsked = (page: Page) => page.getByRole('textbox', { name: 'Token' }).waitFor()
const logOut = (page: Page) => page.getByRole('button', { name: 'Log out' }).click()

async function newTab(page: Page, url = page.url()): Promise<Page> {
  const tab = await page.context().newPage()
  await tab.goto(url)
  return tab
}

async function pauseGreet(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Pause greet' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
}

async function auditOf({ engine }: Mill): Promise<readonly (readonly [string, string])[]> {
  const entries = (await engine.deadLetters?.audit({ limit: 10 })) ?? []
  return entries.map(({ who, action }) => [who, action])
}

test('a wrong token is refused, a right one logs in, and a role sees what it may do', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet], tokens: TOKENS })
  await mill.enqueue(greet, {})
  const page = await visit('queues', { refusals: [401], reducedMotion: 'reduce' })
  await isAsked(page)
  assert.deepEqual(await seriousFaults(page), [])
  const isRefused = page.getByRole('alert').filter({ hasText: 'The server does not know this token.' })
  await logIn(page, 'not-a-token-of-this-server')
  await isRefused.waitFor()
  assert.deepEqual(await seriousFaults(page), [])
  // As a chat or a PDF hands it over.
  await page.reload()
  await logIn(page, 'viewer–0123456789abcdef…')
  await isRefused.waitFor()
  await logIn(page, VERA.token)
  await page.getByText('vera · viewer (may look, not act)').waitFor()
  const pause = page.getByRole('button', { name: 'Pause greet' })
  await pause.waitFor()
  assert.equal(await pause.isDisabled(), true)
  assert.equal(await pause.getAttribute('title'), 'This needs the role operator; you have the role viewer.')
  assert.equal(await page.getByRole('button', { name: 'Read-only link' }).count(), 0)

  await logOut(page)
  await logIn(page, OTTO.token)
  await page.getByText('otto · operator').waitFor()
  await pauseGreet(page)
  await page.getByText('by otto').waitFor()
  assert.deepEqual(await auditOf(mill), [['otto', 'pause']])
})

test('a login is for all tabs of the browser and outlives a reload, until one of them logs out', async (t) => {
  const { mill, visit, url } = await serve(t, { jobs: [greet], tokens: TOKENS })
  await mill.enqueue(greet, {})
  const first = await visit('queues', { refusals: [401] })
  const waiting = await newTab(first)
  await isAsked(waiting)
  await logIn(first, VERA.token)
  const second = await newTab(first, `${url}/#/jobs`)
  // A tab that waits opens too.
  for (const tab of [first, waiting, second]) await tab.getByText('vera · viewer').waitFor()
  await second.reload()
  await second.getByText('vera · viewer').waitFor()
  // No script sees the login, and the token is nowhere.
  const seen = await second.evaluate<string>(
    '[JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie, location.href].join()',
  )
  assert.doesNotMatch(seen, /viewer-|millrace-\d/)
  const [cookie, ...others] = await first.context().cookies()
  assert.deepEqual([others.length, cookie?.httpOnly, cookie?.sameSite, cookie?.expires], [0, true, 'Strict', -1])
  await logOut(second)
  for (const tab of [first, waiting, second]) await isAsked(tab)
  assert.deepEqual(await first.context().cookies(), [])
  await second.reload()
  await isAsked(second)
  await logIn(second, OTTO.token)
  for (const tab of [first, waiting, second]) await tab.getByText('otto · operator').waitFor()
  await isAsked(await visit('queues', { refusals: [401] }))
})

test('a read-only link lets others look until a time, and act on nothing', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet], tokens: TOKENS })
  await mill.enqueue(greet, {})
  const page = await visit('queues', { refusals: [401], reducedMotion: 'reduce' })
  await logIn(page, OTTO.token)
  await page.getByRole('button', { name: 'Read-only link' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('combobox', { name: 'Works for' }).selectOption('a week')
  assert.deepEqual(await seriousFaults(page), [])
  await dialog.getByRole('button', { name: 'Make the link' }).click()
  const link = await dialog.getByRole('textbox', { name: 'Link' }).inputValue()
  assert.deepEqual(await seriousFaults(page), [])
  await dialog.getByRole('button', { name: 'Done' }).click()
  assert.deepEqual(await auditOf(mill), [['otto', 'link']])
  // One who may do more keeps that.
  const own = await newTab(page, link)
  await own.getByText('otto · operator').waitFor()

  const guest = await visit('', { refusals: [401, 403] })
  await isAsked(guest)
  // Put into the address of the open page.
  await guest.goto(link)
  await guest.getByText('link of otto · viewer (may look, not act)').waitFor()
  await guest.getByText('by a link, until').waitFor()
  assert.deepEqual(await seriousFaults(guest), [])
  assert.doesNotMatch(guest.url(), /link/)
  await guest.reload()
  const tab = await newTab(guest, guest.url().replace(/#.*/, '#/queues'))
  const pause = tab.getByRole('button', { name: 'Pause greet' })
  await pause.waitFor()
  assert.equal(await pause.isDisabled(), true)
  const status = await tab.evaluate<number>(
    "fetch('api/v1/queues/greet/pause', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then(({ status }) => status)",
  )
  assert.equal(status, 403)
  assert.deepEqual(await mill.paused(), [])
  await logOut(tab)
  for (const one of [guest, tab]) await isAsked(one)

  const late = await visit('', { refusals: [401] })
  await late.goto(`${link}x`)
  await late.getByRole('alert').filter({ hasText: 'This read-only link has ended' }).waitFor()
})

test('the audit has the user whom a trusted proxy names', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet], tokens: TOKENS, trustUserHeader: 'x-forwarded-user' })
  await mill.enqueue(greet, {})
  const proxied = { extraHTTPHeaders: { 'x-forwarded-user': 'ann@example.com' }, refusals: [401] }
  const page = await visit('queues', proxied)
  await logIn(page, OTTO.token)
  await page.getByText('ann@example.com · operator').waitFor()
  await pauseGreet(page)
  await page.getByText('by ann@example.com').waitFor()
  await page.getByRole('link', { name: 'Audit' }).click()
  await page.getByRole('cell', { name: 'ann@example.com' }).waitFor()
  assert.deepEqual(await auditOf(mill), [['ann@example.com', 'pause']])
})

test('two dashboards under paths of one server have logins of their own', async (t) => {
  const served = await serve(t, { jobs: [greet] })
  const mounts = ['/admin', '/teams/blue/admin'].map((basePath) => {
    const admin = createAdmin(served.mill, { jobs: [greet], page: served.pageFolder, tokens: TOKENS, basePath })
    served.ends.defer(() => admin.close())
    return { basePath, admin }
  })
  const server = await listenOn(
    (request, response) => {
      const mount = mounts.find(({ basePath }) => request.url?.startsWith(basePath))
      if (mount !== undefined) void mount.admin.node(request, response)
      else response.writeHead(404).end()
    },
    { port: 0, host: '127.0.0.1' },
  )
  served.ends.defer(() => server.close())
  const context = (await served.visit()).context()
  const [one, two] = await Promise.all(
    mounts.map(async ({ basePath }) => {
      const page = await context.newPage()
      await page.goto(`${server.url}${basePath}/`)
      await isAsked(page)
      return page
    }),
  )
  if (one === undefined || two === undefined) return assert.fail()
  await logIn(one, VERA.token)
  await one.getByText('vera · viewer').waitFor()
  await logIn(two, OTTO.token)
  await two.getByText('otto · operator').waitFor()
  await one.reload()
  await one.getByText('vera · viewer').waitFor()
  const paths = (await context.cookies(mounts.map(({ basePath }) => `${server.url}${basePath}`))).map(
    ({ path }) => path,
  )
  assert.deepEqual(
    paths.toSorted(),
    mounts.map(({ basePath }) => basePath),
  )
  await logOut(two)
  await isAsked(two)
  await one.reload()
  await one.getByText('vera · viewer').waitFor()
})
