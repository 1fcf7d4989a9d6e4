/** The desk in a browser, as a newcomer uses it: what failed, why, mend it, send it again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnyJob, defineJob, type Mill, type Worker } from 'millrace'
import { eventually } from '../../conformance/process/child.ts'
import { convertPrice } from '../../examples/tour/jobs.ts'
import { LIMIT_MS } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

const priceIn = (currency: string) => ({ article: 'rye', amount: 1.9, currency })

test('a dead letter is found, read, mended against the server’s objection, replayed and seen to complete', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [convertPrice] })
  await mill.work([convertPrice])
  await mill.enqueueMany(convertPrice, [priceIn('EUR'), priceIn('EURO')])
  await eventually(async () => (await mill.counts())[convertPrice.type]?.dead === 1, 'a dead letter', LIMIT_MS)

  const page = await visit('', { refusals: [400] })
  await page.getByRole('link', { name: '1 dead letter.' }).click()
  await page.getByRole('heading', { name: 'Dead letters', level: 1 }).waitFor()
  // The cause leads to its letters, and the letter to its page.
  await page
    .getByRole('listitem')
    .getByRole('link', { name: /the currency .* is unknown/ })
    .click()
  await page.getByRole('link', { name: 'One cause: show all' }).waitFor()
  await page
    .getByRole('table')
    .getByRole('link', { name: /the currency .* is unknown/ })
    .click()
  await page.getByRole('heading', { name: 'Why it died' }).waitFor()
  await page.getByText("the currency 'EURO' is unknown; use one of CHF, EUR, GBP, USD").first().waitFor()

  const payload = page.getByRole('textbox', { name: 'Payload' })
  await payload.fill('{ "article": "rye", ')
  await page.getByText('This is not JSON yet').waitFor()
  await payload.fill(JSON.stringify({ ...priceIn('EUR'), amount: 'a lot' }))
  await page.getByRole('button', { name: 'Replay with this payload' }).click()
  await page.getByRole('alert').filter({ hasText: 'amount: Invalid input: expected number' }).waitFor()

  await payload.fill(JSON.stringify(priceIn('EUR')))
  await page.getByRole('button', { name: 'Dry run' }).click()
  await page.getByText('This can be replayed. Nothing has been changed yet.').waitFor()
  await page.getByRole('button', { name: 'Replay with this payload' }).click()
  await page.getByRole('navigation', { name: 'Where you are' }).getByRole('link', { name: 'Jobs' }).waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Replayed by hand' }).waitFor()
  await page.getByRole('region', { name: 'result' }).filter({ hasText: '"euros": 1.9' }).waitFor()
})

/** Fails as long as the printer is out of paper. */
function printerJob() {
  const printer = { hasPaper: false }
  const print = defineJob({
    type: 'print-label',
    attempts: 1,
    run() {
      if (!printer.hasPaper) throw new Error('out of paper')
    },
  })
  return { printer, print }
}

async function buryLabels(mill: Mill, print: AnyJob, count: number): Promise<Worker> {
  const worker = await mill.work([print])
  await mill.enqueueMany(
    print,
    Array.from({ length: count }, (_, n) => ({ n })),
  )
  await eventually(async () => (await mill.counts())[print.type]?.dead === count, 'the dead letters', LIMIT_MS)
  return worker
}

test('all letters of a filter are selected, tried, replayed at a rate, and seen to go', async (t) => {
  const { printer, print } = printerJob()
  const { mill, visit } = await serve(t, { jobs: [print] })
  await buryLabels(mill, print, 60)
  const page = await visit('dead-letters')
  await page.getByRole('checkbox', { name: 'Select all on this page' }).check()
  const bar = page.getByRole('region', { name: 'Selection' })
  await bar.getByText('50 dead letters selected').waitFor()
  await bar.getByRole('button', { name: 'Select all dead letters' }).click()
  await bar.getByText('all dead letters selected').waitFor()
  await bar.getByRole('button', { name: 'Replay…' }).click()

  const dialog = page.getByRole('dialog', { name: 'Replay 60 dead letters?' })
  await dialog.getByText('60 of 60 would be replayed.').waitFor()
  assert.equal((await mill.counts())[print.type]?.dead, 60)
  printer.hasPaper = true
  // Slow enough that it is seen to run.
  await dialog.getByRole('spinbutton', { name: 'At most per second (optional)' }).fill('6')
  await dialog.getByRole('textbox', { name: 'Reason (optional)' }).fill('paper is in')
  const operations = page.getByRole('region', { name: 'Bulk operations' })
  await Promise.all([
    operations.getByRole('progressbar', { name: 'Progress of the operation' }).waitFor(),
    dialog.getByRole('button', { name: 'Replay', exact: true }).click(),
  ])
  await operations.getByText('Replayed 60.').waitFor()
  await page.getByRole('heading', { name: 'No dead letters' }).waitFor()
  await eventually(async () => (await mill.counts())[print.type]?.completed === 60, 'their completion', LIMIT_MS)
  await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click()
  await page
    .getByRole('row', { name: /local replayed print-label .* paper is in/ })
    .first()
    .waitFor()
})

test('a cause with thousands of letters is counted whole, and what is replayed is what was shown', async (t) => {
  const { print } = printerJob()
  const { mill, visit } = await serve(t, { jobs: [print] })
  const worker = await buryLabels(mill, print, 2_345)
  const page = await visit('dead-letters')
  const groups = page.getByRole('listitem').filter({ hasText: 'out of paper' })
  await groups.getByText('2,345', { exact: true }).waitFor()
  // Three more die of the same cause after the page was shown: they are not meant.
  await mill.enqueueMany(print, [{ n: -1 }, { n: -2 }, { n: -3 }])
  await eventually(async () => (await mill.counts())[print.type]?.dead === 2_348, 'the later ones', LIMIT_MS)
  await worker.stop()
  await groups.getByRole('button', { name: 'Replay all 2,345 of this cause' }).click()
  const dialog = page.getByRole('dialog', { name: 'Replay 2,345 dead letters?' })
  await dialog.getByText('2,345 of 2,345 would be replayed.').waitFor()
  await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
  await page.getByRole('region', { name: 'Bulk operations' }).getByText('Replayed 2,345.').waitFor()
  const counts = (await mill.counts())[print.type]
  assert.deepEqual([counts?.dead, counts?.ready], [3, 2_345])
})

test('letters are discarded only with a reason, and the discard is undone', async (t) => {
  const { print } = printerJob()
  const { mill, visit } = await serve(t, { jobs: [print] })
  await buryLabels(mill, print, 3)
  const page = await visit('dead-letters')
  const boxes = page.getByRole('checkbox', { name: /^Select print-label/ })
  await boxes.nth(2).waitFor()
  await boxes.nth(0).check()
  await boxes.nth(1).check()
  await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Discard…' }).click()

  const dialog = page.getByRole('dialog', { name: 'Discard 2 dead letters?' })
  await dialog.getByRole('button', { name: 'Discard', exact: true }).click()
  await dialog.locator('input:invalid').waitFor()
  assert.equal((await mill.counts())[print.type]?.dead, 3)
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('test prints')
  await dialog.getByRole('button', { name: 'Discard', exact: true }).click()
  const operations = page.getByRole('region', { name: 'Bulk operations' })
  await operations.getByText('Discarded 2.').waitFor()
  await boxes.nth(1).waitFor({ state: 'detached' })
  assert.equal((await mill.counts())[print.type]?.dead, 1)

  await Promise.all([
    page.getByText('2 of 2 are dead letters again').waitFor(),
    operations.getByRole('button', { name: 'Undo' }).click(),
  ])
  await boxes.nth(2).waitFor()
  assert.equal((await mill.counts())[print.type]?.dead, 3)
})
