/** The list of jobs, and one job with everything that is known about it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { z } from 'zod'
import { PHONE } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })
const later = defineJob({ type: 'later' })

test('jobs are filtered by state and type, searched and paged', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet, later] })
  await mill.enqueueMany(
    later,
    Array.from({ length: 40 }, (_, n) => ({ n })),
  )
  await mill.enqueue(later, { n: 40 }, { key: 'invoice-2026-11' })
  await mill.work([greet])
  await mill.result(await mill.enqueue(greet, {}))
  const unwanted = await mill.enqueue(later, { n: 41 })
  await mill.cancel(unwanted.id, { who: 'ann', reason: 'a typo' })

  const page = await visit('jobs')
  const rows = page.getByRole('row').filter({ has: page.getByRole('cell') })
  await rows.nth(29).waitFor()
  assert.equal(await rows.count(), 30)
  await page.getByRole('button', { name: 'Older →' }).click()
  await page.getByText('Page 2').waitFor()
  await rows.nth(29).waitFor({ state: 'detached' })
  assert.equal(await rows.count(), 13)
  await page.getByRole('button', { name: '← Newer' }).click()
  await rows.nth(29).waitFor()

  await page.getByRole('radio', { name: 'Completed' }).check()
  await rows.nth(1).waitFor({ state: 'detached' })
  await rows.filter({ hasText: 'greet' }).waitFor()
  await page.getByRole('radio', { name: 'Dead letters' }).check()
  await page.getByRole('heading', { name: 'No matching jobs' }).waitFor()
  await page.getByRole('radio', { name: 'Cancelled' }).check()
  await rows.filter({ hasText: 'Cancelled' }).waitFor()
  assert.equal(await rows.count(), 1)
  await page.getByRole('radio', { name: 'All' }).check()
  await rows.nth(29).waitFor()
  await page.getByRole('combobox', { name: 'Type' }).selectOption('later')
  await rows.filter({ hasText: 'greet' }).waitFor({ state: 'detached' })
  await rows.nth(29).waitFor()
  await page.getByRole('combobox', { name: 'Search jobs' }).fill('invoice-2026')
  await rows.nth(1).waitFor({ state: 'detached' })
  await rows.filter({ hasText: 'key invoice-2026-11' }).waitFor()
  // What was chosen stands in the address, so it can be sent to somebody else.
  assert.match(page.url(), /#\/jobs\?type=later&search=invoice-2026$/)
  await page.getByRole('combobox', { name: 'Search jobs' }).fill('nothing like it')
  await page.getByRole('heading', { name: 'No matching jobs' }).waitFor()
  await page.getByRole('link', { name: 'Show all jobs' }).click()
  await rows.nth(29).waitFor()

  // Ten of them fit on the screen of a phone below its bar.
  const phone = await visit('jobs', { viewport: PHONE, hasTouch: true, isMobile: true })
  await phone.getByRole('row').nth(30).waitFor()
  const bottom = `document.querySelectorAll('tbody tr')[10].getBoundingClientRect().bottom`
  const top = `document.querySelector('tbody').getBoundingClientRect().top`
  assert.ok((await phone.evaluate<number>(`${bottom} - ${top}`)) < PHONE.height - 56)
})

test('newer jobs are offered, and one is enqueued by hand', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.enqueue(greet, {}, { delay: '1h' })
  const page = await visit('jobs')
  await page.getByRole('row', { name: /^Delayed/ }).waitFor()
  await mill.enqueue(greet, {})
  await page.getByRole('button', { name: '1 newer job: show' }).click()
  await page.getByRole('row', { name: /^Queued/ }).waitFor()

  await page.getByRole('button', { name: 'Enqueue a job' }).click()
  const dialog = page.getByRole('dialog', { name: 'Enqueue a job' })
  await dialog.getByRole('combobox', { name: 'Type' }).fill('greet')
  await dialog.getByRole('textbox', { name: 'Payload' }).fill('{ "name": "Ada" }')
  await dialog.getByRole('button', { name: 'Enqueue' }).click()
  await page.getByRole('heading', { name: 'greet', level: 1 }).waitFor()
  await page.getByRole('region', { name: 'payload' }).filter({ hasText: '"name": "Ada"' }).waitFor()
  await page.getByText("No worker runs 'greet'").waitFor()
})

test('a job shows its timeline, progress and dependencies, hides secrets, and is cancelled', async (t) => {
  const fetchPart = defineJob({ type: 'fetch-part', run: () => 1 })
  const assemble = defineJob({
    type: 'assemble',
    payload: z.object({ name: z.string(), pin: z.string().meta({ writeOnly: true }) }),
    async run({ progress, signal }) {
      await progress({ done: 3, total: 12 })
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  })
  const jobs = [fetchPart, assemble]
  const { mill, visit } = await serve(t, { jobs })
  const flow = await mill.enqueueFlow({
    wheel: { job: fetchPart, payload: {} },
    shaft: { job: fetchPart, payload: {} },
    mill: { job: assemble, payload: { name: 'mill', pin: '4711' }, after: ['wheel', 'shaft'] },
  })

  const page = await visit(`jobs/${flow.mill.id}`)
  await page.getByText('It waits for').waitFor()
  const graph = page.getByRole('region', { name: 'Jobs of this flow' })
  await graph
    .getByRole('link', { name: /^fetch-part Queued/ })
    .nth(1)
    .waitFor()
  assert.equal(await graph.locator('path').count(), 2)

  await mill.work(jobs)
  await graph
    .getByRole('link', { name: /^fetch-part Completed/ })
    .nth(1)
    .waitFor()
  await page.getByRole('progressbar', { name: 'Progress of the job' }).waitFor()
  await page.getByText('3 of 12', { exact: true }).waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Started' }).filter({ hasText: 'attempt 1' }).waitFor()
  await page.getByRole('region', { name: 'payload' }).filter({ hasText: '"name": "mill"' }).waitFor()
  await page.getByRole('region', { name: 'payload' }).getByText('redacted', { exact: true }).waitFor()
  assert.equal(await page.getByText('4711').count(), 0)

  await page.getByRole('button', { name: 'Cancel job' }).click()
  const dialog = page.getByRole('dialog', { name: 'Cancel this job?' })
  await dialog.getByRole('textbox', { name: 'Reason (optional)' }).fill('ordered twice')
  await dialog.getByRole('button', { name: 'Cancel job' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('listitem').filter({ hasText: 'Cancelled' }).filter({ hasText: '“ordered twice”' }).waitFor()
  await page.getByRole('row', { name: /local cancelled .*ordered twice/ }).waitFor()

  await graph
    .getByRole('link', { name: /^fetch-part Completed/ })
    .first()
    .click()
  await page.getByRole('heading', { name: 'fetch-part', level: 1 }).waitFor()
})

test('a large payload is shown whole at once, and only its beginning is coloured', async (t) => {
  const load = defineJob({ type: 'load' })
  const { mill, visit } = await serve(t, { jobs: [load] })
  const rows = Array.from({ length: 8_000 }, (_, id) => ({ id, name: `row ${id}` }))
  const { id } = await mill.enqueue(load, { rows, last: 'the end' })
  const page = await visit(`jobs/${id}`)
  const payload = page.getByRole('region', { name: 'payload' })
  const coloured = payload.locator('span')
  const showAll = page.getByRole('button', { name: /^Show all \d+ KB$/ })
  await showAll.waitFor()
  const before = await coloured.count()
  assert.ok(before > 100)
  await showAll.click()
  await payload.filter({ hasText: 'the end' }).waitFor()
  // A span for each of 16 thousand names and values would stop the page for seconds, at each reload anew.
  assert.equal(await coloured.count(), before)
})

test('a finished job is run again as a new one, with its secrets', async (t) => {
  const pins: string[] = []
  const pay = defineJob({
    type: 'pay',
    payload: z.object({ pin: z.string().meta({ writeOnly: true }) }),
    run: ({ payload }) => void pins.push(payload.pin),
  })
  const { mill, visit } = await serve(t, { jobs: [pay] })
  await mill.work([pay])
  const receipt = await mill.enqueue(pay, { pin: '4711' })
  await mill.result(receipt)
  const page = await visit(`jobs/${receipt.id}`)
  await page.getByRole('button', { name: 'Copy as enqueue' }).waitFor()
  await page.getByRole('button', { name: 'Run again' }).click()
  const dialog = page.getByRole('dialog', { name: 'Run this job again?' })
  await dialog.getByRole('textbox', { name: 'Reason (optional)' }).fill('the bank was closed')
  await dialog.getByRole('button', { name: 'Run again' }).click()
  await page.waitForURL((url) => !url.hash.includes(receipt.id))
  await page.getByText('the bank was closed').first().waitFor()
  await page.getByText('Completed').first().waitFor()
  assert.deepEqual(pins, ['4711', '4711'])
})
