/** A schedule on its page: made, looked ahead, edited, run, followed and removed, with the worker here and in another process. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { defineJob } from 'millrace'
import type { Locator, Page } from 'playwright-core'
import { doomed, greet } from '../cli/fixtures/jobs.ts'
import { JOBS, startMillrace, temporaryFolder } from '../cli/run.ts'
import { seriousFaults } from './axe.ts'
import { type Served, useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

const cardOf = (page: Page, name: string): Locator =>
  page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) })

/** Presses the button and the verb of the dialog that it opens. */
async function act(page: Page, button: string, verb: string): Promise<void> {
  await page.getByRole('button', { name: button }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Reason (optional)' }).fill('on the page')
  await dialog.getByRole('button', { name: verb, exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
}

async function add(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New schedule' }).click()
  const form = page.getByRole('dialog', { name: 'New schedule' })
  const fill = (label: string, text: string): Promise<void> => form.getByLabel(label).fill(text)
  await fill('Name', 'nightly')
  await fill('Type', 'greet')
  await fill('Cron', '0 2 * *')
  await form.getByText(`'0 2 * *' has 4 fields; give minute hour day month weekday`).waitFor()
  await fill('Cron', '0 2 * * *')
  await fill('Time zone', 'Europe/Brelin')
  await form.getByText(`'Europe/Brelin' is no time zone that this Node knows`).waitFor()
  await fill('Time zone', 'Europe/Berlin')
  // Both zones, hour by hour: Berlin is one or two hours ahead of UTC.
  await form.getByRole('columnheader', { name: 'In Europe/Berlin' }).waitFor()
  await form.getByRole('columnheader', { name: 'Here, in UTC' }).waitFor()
  const first = form.getByRole('row').nth(1)
  await first.filter({ hasText: /02:00:00.*0[01]:00:00/s }).waitFor()
  assert.equal(await form.getByRole('row').count(), 11)
  await fill('No run before (optional)', '2040-01-02T00:00:00')
  await fill('No run after (optional)', '2040-01-01T00:00:00')
  await form.getByText(`'end' is before 'start'; swap them`).waitFor()
  await fill('No run before (optional)', '')
  await fill('Payload', '{"name": 7}')
  await form.getByRole('button', { name: 'Add' }).click()
  await form.getByRole('alert').filter({ hasText: 'name' }).waitFor()
  // Nothing that was typed is lost.
  assert.equal(await form.getByLabel('Name').inputValue(), 'nightly')
  assert.equal(await form.getByLabel('Cron').inputValue(), '0 2 * * *')
  assert.deepEqual(await seriousFaults(page), [])
  await fill('Payload', '{"name": "Ada", "token": "hush"}')
  await form.getByRole('button', { name: 'Add' }).click()
  await form.waitFor({ state: 'detached' })
}

async function follow({ mill, visit }: Served): Promise<void> {
  const page = await visit('schedules', { refusals: [400] })
  await add(page)
  const card = cardOf(page, 'nightly')
  await card.getByText('0 2 * * *').waitFor()
  await card.getByText('Next ten runs').click()
  await card.getByRole('row').nth(10).waitFor()

  await page.getByRole('button', { name: 'Edit nightly' }).click()
  const form = page.getByRole('dialog', { name: 'Edit nightly' })
  await form.getByText('Leave [redacted] where it is').waitFor()
  await form.getByLabel('Cron').fill('30 2 * * *')
  await form.getByLabel('Payload').fill('{"name": "Bob", "token": "[redacted]"}')
  await form.getByRole('row').filter({ hasText: '02:30:00' }).first().waitFor()
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  const stored = await mill.schedules.find('nightly')
  assert.deepEqual([stored?.cron, stored?.tz, stored?.limit], ['30 2 * * *', 'Europe/Berlin', null])
  assert.deepEqual(stored?.payload, { name: 'Bob', token: 'hush' })

  // Open before the run: it follows.
  await card.getByText('Last runs').click()
  await card.getByText('None is recorded yet.').waitFor()
  await act(page, 'Run now: nightly', 'Run now')
  await card.getByRole('row', { name: /Completed .*by hand/ }).waitFor()
  await mill.schedules.upsert('doomed', { type: 'doomed', cron: '0 4 * * *' })
  await mill.schedules.runNow('doomed')
  const failing = cardOf(page, 'doomed')
  await failing.getByText('Last runs').click()
  await failing.getByRole('row', { name: /Dead letter / }).waitFor()
  assert.deepEqual(await seriousFaults(page), [])

  await act(page, 'Pause nightly', 'Pause')
  await card.getByText('No runs until it is resumed.').waitFor()
  await act(page, 'Resume nightly', 'Resume')
  await card.getByRole('button', { name: 'Pause nightly' }).waitFor()
  await act(page, 'Remove nightly', 'Remove')
  await card.waitFor({ state: 'detached' })
  assert.equal(await mill.schedules.find('nightly'), null)

  await failing.getByRole('row').getByRole('link').click()
  await page.getByRole('heading', { name: 'doomed', level: 1 }).waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click()
  await page.getByRole('row', { name: /local removed schedule nightly on the page/ }).waitFor()
  await page.getByRole('row', { name: /local changed schedule, payload edited/ }).waitFor()
}

const JOBS_HERE = [greet, doomed]

test('a schedule is made, edited, run and removed, with the worker in this process', async (t) => {
  const served = await serve(t, { jobs: JOBS_HERE })
  await served.mill.work(JOBS_HERE)
  await follow(served)
})

test('with the worker in another process the page shows the same', async (t) => {
  const store = { url: `sqlite:${await temporaryFolder(t)}/jobs.db`, remove: () => {} }
  const served = await serve(t, { jobs: JOBS_HERE, store })
  const worker = startMillrace(t, ['work', JOBS, '--types', 'greet,doomed', '--engine', store.url])
  served.ends.defer(async () => {
    worker.child.kill()
    await worker.ended
  })
  await worker.said('worker_id')
  await follow(served)
})

test('one that code declares is not edited here, and ticks that nobody ran are marked', async (t: TestContext) => {
  const report = defineJob({ type: 'report', schedule: { cron: '*/5 * * * *', missed: 'skip' }, run: () => null })
  const { mill, visit } = await serve(t, { jobs: [report] })
  const worker = await mill.work([report])
  await worker.stop()
  // As if no keeper had run for an hour.
  const { engine } = mill
  const [record] = (await engine.records?.list('schedule')) ?? []
  assert.ok(record)
  const hourAgoMs = (await mill.schedules.preview('report', { count: 1 }))[0] ?? 0
  const body = JSON.stringify({ ...JSON.parse(record.body), nextAtMs: hourAgoMs - 13 * 300_000 })
  await engine.records?.save('schedule', { ...record, revision: 'later', body }, record.revision)
  const keeper = await mill.keep({ jobs: [report] })
  const page = await visit('schedules')
  const card = cardOf(page, 'report')
  await card.getByText('Declared in code, so it is edited there.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Edit report' }).count(), 0)
  await card.getByText('Last runs').click()
  await card.getByRole('row', { name: /Missed 1[23] times none: no keeper ran/ }).waitFor()
  await page.getByRole('button', { name: 'Remove report' }).click()
  await page.getByText('Code declares it, so it comes back when that code starts again').waitFor()
  await keeper.stop()
})
