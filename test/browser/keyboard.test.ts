/** The dashboard without a mouse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, NonRetryable } from 'millrace'
import { eventually } from '../../conformance/process/child.ts'
import { seriousFaults } from './axe.ts'
import { LIMIT_MS } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })
const later = defineJob({ type: 'later' })
const failing = defineJob({
  type: 'failing',
  run: () => {
    throw new NonRetryable('no such place')
  },
})

test('rows are walked with j and k, and Enter opens one', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [later] })
  for (const n of [1, 2, 3]) await mill.enqueue(later, { n }, { delay: '1h' })
  const page = await visit('jobs')
  const rows = page.getByRole('row').filter({ has: page.getByRole('cell') })
  await rows.nth(2).waitFor()
  const focused = (): Promise<number> =>
    page.evaluate(`[...document.querySelectorAll('tbody tr')].findIndex((row) => row.matches(':focus-within'))`)
  const seen: number[] = []
  for (const key of ['j', 'j', 'j', 'j', 'k']) {
    await page.keyboard.press(key)
    seen.push(await focused())
  }
  assert.deepEqual(seen, [0, 1, 2, 2, 1])
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'later', level: 1 }).waitFor()
})

test('dead letters are ticked with x and Shift, by keys and by mouse', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [failing] })
  await mill.work([failing])
  for (const n of [1, 2, 3, 4]) await mill.result(await mill.enqueue(failing, { n })).catch(() => {})
  const page = await visit('dead-letters')
  const boxes = page.getByRole('checkbox', { name: /^Select failing/ })
  await boxes.nth(3).waitFor()
  const ticked = (): Promise<readonly boolean[]> => Promise.all([0, 1, 2, 3].map((nth) => boxes.nth(nth).isChecked()))
  for (const key of ['j', 'x', 'j', 'j', 'Shift+X']) await page.keyboard.press(key)
  assert.deepEqual(await ticked(), [true, true, true, false])
  await page.keyboard.press('x')
  assert.deepEqual(await ticked(), [true, true, false, false])
  await boxes.nth(1).click()
  await boxes.nth(3).click({ modifiers: ['Shift'] })
  assert.deepEqual(await ticked(), [true, true, true, true])
})

test('the palette goes to pages, types, jobs and searches by a few letters', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [later] })
  const { id } = await mill.enqueue(later, {}, { delay: '1h', key: 'invoice-7' })
  const page = await visit('')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const open = async (text: string): Promise<void> => {
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Go to' }).getByRole('textbox').fill(text)
  }
  await open('que')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Queues' }).waitFor()
  await open('lat')
  assert.deepEqual(await seriousFaults(page), [])
  await page.getByRole('link', { name: 'later Type' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/#\/queues\/later$/)
  await open('invoice-7')
  await page.keyboard.press('Enter')
  await page.waitForURL(/search=invoice-7$/)
  await open(id)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'later', level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  const palette = page.getByRole('dialog', { name: 'Go to' })
  await palette.waitFor()
  await page.keyboard.press('Escape')
  await palette.waitFor({ state: 'detached' })
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

test('a dialog that closes takes no focus that has moved on meanwhile', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.enqueue(greet, {})
  const page = await visit('queues')
  await page.getByRole('button', { name: 'Pause greet' }).focus()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
  // The event of closing comes later, and only then does the page take the dialog away.
  await page.evaluate(`document.querySelector('dialog').close(); document.querySelector('main h1').focus()`)
  await page.locator('dialog').waitFor({ state: 'detached' })
  await page.locator('h1:focus').waitFor({ timeout: 5_000 })
})
