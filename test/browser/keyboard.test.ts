/** The dashboard without a mouse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { eventually } from '../../conformance/process/child.ts'
import { LIMIT_MS } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })

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
