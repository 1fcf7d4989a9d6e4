/** Tokens and roles, and the dashboard without a mouse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { eventually } from '../../conformance/process/child.ts'
import { LIMIT_MS } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })
const TOKENS = [
  { token: 'viewer-0123456789abcdef', role: 'viewer', who: 'vera' },
  { token: 'operator-0123456789abcdef', role: 'operator', who: 'otto' },
] as const

test('a token is asked for, a wrong one refused, and a role sees what it may do', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet], tokens: TOKENS })
  await mill.enqueue(greet, {})
  const page = await visit('queues', { refusals: [401] })
  const give = async (token: string): Promise<void> => {
    await page.getByRole('textbox', { name: 'Token' }).fill(token)
    await page.getByRole('button', { name: 'Open' }).click()
  }
  const other = await page.context().newPage()
  const refusals: string[] = []
  other.on('response', (response) => void (response.status() === 401 && refusals.push(response.url())))
  await other.goto(page.url())
  await other.getByRole('textbox', { name: 'Token' }).waitFor()
  const isRefused = page.getByRole('alert').filter({ hasText: 'The server does not know this token.' })
  await give('not-a-token-of-this-server')
  await isRefused.waitFor()
  // As a chat or a PDF hands it over. Browsers cannot send it at all.
  await give('viewer–0123456789abcdef…')
  await isRefused.waitFor()
  await page.reload()
  await give(TOKENS[0].token)
  await page.getByText('vera · viewer (may look, not act)').waitFor()
  // Another tab got the token that was right, and heard nothing of the others.
  await other.getByText('vera · viewer').waitFor()
  assert.equal(refusals.length, 1, refusals.join(', '))
  const pause = page.getByRole('button', { name: 'Pause greet' })
  await pause.waitFor()
  assert.equal(await pause.isDisabled(), true)
  assert.equal(await pause.getAttribute('title'), 'This needs the role operator; your token has the role viewer.')
  // The token stays in the tab, and in no address.
  await page.reload()
  await page.getByText('vera · viewer').waitFor()
  assert.doesNotMatch(page.url(), /viewer-/)

  await page.getByRole('button', { name: 'Forget the token' }).click()
  await give(TOKENS[1].token)
  await page.getByText('otto · operator').waitFor()
  await pause.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByText('by otto').waitFor()
})

test('a second tab has the token of the first, until it is forgotten in any of them', async (t) => {
  const { mill, visit, url } = await serve(t, { jobs: [greet], tokens: TOKENS })
  await mill.enqueue(greet, {})
  const first = await visit('queues', { refusals: [401] })
  await first.getByRole('textbox', { name: 'Token' }).fill(TOKENS[0].token)
  await first.getByRole('button', { name: 'Open' }).click()
  await first.getByText('vera · viewer').waitFor()
  const second = await first.context().newPage()
  await second.goto(`${url}/#/jobs`)
  await second.getByText('vera · viewer').waitFor()
  // It is never on the disk.
  assert.doesNotMatch(await second.evaluate<string>('JSON.stringify(localStorage) + document.cookie'), /viewer-/)
  await second.getByRole('button', { name: 'Forget the token' }).click()
  for (const tab of [first, second]) await tab.getByRole('textbox', { name: 'Token' }).waitFor()
  // A tab that waits opens when another one gets a token.
  await second.getByRole('textbox', { name: 'Token' }).fill(TOKENS[1].token)
  await second.getByRole('button', { name: 'Open' }).click()
  for (const tab of [first, second]) await tab.getByText('otto · operator').waitFor()
  const stranger = await visit('queues', { refusals: [401] })
  await stranger.getByRole('textbox', { name: 'Token' }).waitFor()
})

test('everything is reached by the keyboard, and a dialog keeps and gives back the focus', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.enqueue(greet, {})
  const page = await visit()
  const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()
  await heading('Overview')
  await page.keyboard.press('Tab')
  await page.locator('a:focus', { hasText: 'Skip to the content' }).waitFor()
  await page.keyboard.press('Enter')
  await page.locator('main:focus').waitFor()

  const goes = async (): Promise<boolean> => {
    await page.keyboard.press('g')
    await page.keyboard.press('q')
    const seen = page.getByRole('heading', { name: 'Queues', level: 1 }).waitFor({ timeout: 5_000 })
    return seen.then(
      () => true,
      () => false,
    )
  }
  // Keys between which more than a second passed do not belong together, and are pressed once more.
  await eventually(goes, 'the page of the keys', LIMIT_MS)
  // A screen reader announces the page.
  await page.locator('h1:focus', { hasText: 'Queues' }).waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('j')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  // Keys meant for a dialog go nowhere else.
  await heading('Queues')

  const pause = page.getByRole('button', { name: 'Pause greet' })
  await pause.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Pause greet?' }).waitFor()
  for (let presses = 0; presses < 8; presses += 1) {
    await page.keyboard.press('Tab')
    // Between its last and its first element the focus may be in the browser's own frame, never on the page behind.
    const place = await page.evaluate<string>(
      "document.activeElement.closest('dialog') !== null || document.activeElement === document.body ? 'inside' : document.activeElement.outerHTML",
    )
    assert.equal(place, 'inside')
  }
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.locator('button:focus', { hasText: 'Pause' }).waitFor()

  await page.keyboard.press('/')
  await heading('Jobs')
  await page.locator('input[type=search]:focus').waitFor()
  await page.keyboard.type('g?/')
  await page.waitForURL(/search=g%3F%2F/)
})
