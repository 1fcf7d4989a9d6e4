import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Reaper, tableRoutes } from 'millrace/workloads/job-tables'
import { existingTables, jobTables, secondsFromNow, type TableFixture } from '../fixtures/job-tables.ts'
import { seriousFaults } from './axe.ts'
import { PHONE } from './browser.ts'
import { MARKUP } from './full-scene.ts'
import { type ServeOptions, useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

function serveTables(t: TestContext, { pool }: TableFixture, options: Pick<ServeOptions, 'tokens'> = {}) {
  return serve(t, { jobs: [], pages: ['tables'], over: (mill) => ({ routes: tableRoutes(mill, pool) }), ...options })
}

/** One table with rows in every state, two of them stuck, and one table in order. */
async function scene(t: TestContext, options: Pick<ServeOptions, 'tokens'> = {}) {
  const tables = await jobTables(t)
  await tables.expired('jobs', 'lost-1', { attempt_count: 3, stage: 'clip', locked_by: MARKUP })
  await tables.expired('jobs', 'lost-2', { stage: 'asr' })
  await new Reaper(tables.pool).runOnce()
  await tables.insert('jobs', { id: 'waits', next_earliest_run_at: secondsFromNow(-7_500) })
  for (const n of [1, 2, 3]) await tables.insert('jobs', { id: `done-${n}`, status: 'completed' })
  await tables.expired('jobs', MARKUP, { attempt_count: 3, lease_expires_at: secondsFromNow(-7_300) })
  await tables.expired('jobs', 'a/b?c', { stage: 'burn-in', lease_expires_at: secondsFromNow(-90) })
  await tables.insert('asr_jobs', { id: 7, status: 'completed' })
  return { tables, ...(await serveTables(t, tables, options)) }
}

test('the page of job tables shows what is stuck and what the reaper did, and an operator acts', async (t) => {
  const { visit, tables } = await scene(t)
  const page = await visit()
  await page.getByRole('navigation').getByRole('link', { name: 'Job tables' }).click()
  await page.getByRole('heading', { name: 'Job tables', level: 1 }).waitFor()
  const list = page.getByRole('table', { name: 'Job tables' })
  const jobs = list.getByRole('row', { name: /^jobs/ })
  await jobs.getByText('Rows stuck').waitFor()
  await list
    .getByRole('row', { name: /^asr_jobs/ })
    .getByText('In order')
    .waitFor()
  // Queued, processing, completed, failed, attempts exhausted, stuck.
  assert.deepEqual((await jobs.getByRole('cell').allTextContents()).slice(1, 7), ['2', '2', '3', '1', '1', '2'])
  await jobs.getByText('2 h 5 min').waitFor()
  await page.getByText('jobs: stuck rows').waitFor()
  await page
    .getByText(/millrace reap --tables jobs --every 60s/)
    .first()
    .waitFor()
  const stuck = page.getByRole('table', { name: 'Stuck rows' })
  await stuck
    .getByRole('row', { name: /burn-in/ })
    .getByText('requeue it')
    .waitFor()
  await stuck
    .getByRole('row', { name: /3 of 3/ })
    .getByText('fail it')
    .waitFor()
  await stuck.getByText(MARKUP).first().waitFor()
  const did = page.getByRole('table', { name: 'What the reaper did' })
  await did
    .getByRole('row', { name: /lost-1/ })
    .getByText('Failed (timeout)')
    .waitFor()
  await did
    .getByRole('row', { name: /lost-2/ })
    .getByText('Requeued')
    .waitFor()

  await page.getByRole('button', { name: 'Requeue jobs a/b?c' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('its machine is gone')
  await page.getByRole('dialog').getByRole('button', { name: 'Requeue' }).click()
  await page.getByText('Requeued: jobs a/b?c').waitFor()
  await did.getByText('“its machine is gone”').waitFor()
  const { status, locked_by, attempt_count } = await tables.row('jobs', 'a/b?c')
  assert.deepEqual([status, locked_by, attempt_count], ['queued', null, 1])
  await page.getByRole('button', { name: `Fail jobs ${MARKUP}` }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('never again')
  await page.getByRole('dialog').getByRole('button', { name: 'Fail' }).click()
  await did.getByText('Failed by hand').waitFor()
  await stuck.waitFor({ state: 'detached' })
  const failed = await tables.row('jobs', MARKUP)
  assert.deepEqual([failed.status, failed.fail_code, failed.fail_reason], ['failed', 'operator', 'never again'])
  assert.deepEqual((await tables.events(MARKUP)).at(-1)?.type, 'operator:failed')
  await page.goto(`${page.url().split('#')[0]}#/audit`)
  await page.getByText('requeued row').first().waitFor()
  await page.getByText('failed row').first().waitFor()
})

test('the page of job tables is accessible, fits a phone, and says what the schema lacks', async (t) => {
  const { visit } = await scene(t)
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await visit('tables', { colorScheme, reducedMotion: 'reduce', viewport: { width: 1440, height: 900 } })
    await page.getByRole('table', { name: 'What the reaper did' }).waitFor()
    assert.deepEqual(await seriousFaults(page), [])
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    const phone = await visit('tables', { colorScheme, viewport: PHONE, hasTouch: true, isMobile: true })
    await phone.getByRole('table', { name: 'What the reaper did' }).waitFor()
    assert.ok((await phone.evaluate<number>('document.documentElement.scrollWidth')) <= PHONE.width)
    assert.deepEqual(await seriousFaults(phone), [])
  }
  const narrow = await visit('tables', { viewport: { width: 1024, height: 800 } })
  await narrow.getByRole('table', { name: 'What the reaper did' }).waitFor()
  const hidden = await narrow.evaluate<readonly number[]>(
    '[...document.querySelectorAll(".table-frame")].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)',
  )
  assert.deepEqual(hidden, [0, 0, 0])
  const bare = await serveTables(t, await existingTables(t))
  const page = await bare.visit('tables')
  await page
    .getByText(/missing: locked_by, lease_expires_at/)
    .first()
    .waitFor()
  await page.getByText('Not ready').first().waitFor()
})

test('without --tables there is no such page', async (t) => {
  const { visit } = await serve(t, { jobs: [] })
  const page = await visit('tables')
  await page.getByRole('heading', { name: 'No job tables here' }).waitFor()
  assert.equal(await page.getByRole('navigation').getByRole('link', { name: 'Job tables' }).count(), 0)
})
