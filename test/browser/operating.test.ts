/** Workers, queues, alerts and the audit, each with what is done on its page. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { type Alerting, type AlertRule, startAlerting } from 'millrace/observe'
import { eventually } from '../../conformance/process/child.ts'
import { presenceOf } from '../../src/engine/capability-checks.ts'
import { packageVersion } from '../../src/engine/package-info.ts'
import { untilFile } from '../cli/fixtures/jobs.ts'
import { JOBS, startMillrace, temporaryFolder } from '../cli/run.ts'
import { seriousFaults } from './axe.ts'
import { LIMIT_MS } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })

test('workers say that they live and what they run, until they stop', async (t) => {
  const encode = defineJob({
    type: 'encode-film',
    run: ({ signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
  })
  const { mill, visit } = await serve(t, { jobs: [greet, encode] })
  const first = await mill.work([greet], { id: 'mill-1' })
  await mill.work([encode], { id: 'mill-2', drain: 0, concurrency: 4 })
  const { id } = await mill.enqueue(encode, {})
  const page = await visit('workers')
  const card = (name: string) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name }) })
  await card('mill-1').getByText('Idle').waitFor()
  await first.stop()
  await card('mill-1').waitFor({ state: 'detached' })
  // It comes with the next beat.
  await card('mill-2').getByRole('heading', { name: 'Runs 1 of 4 at once' }).waitFor()
  const fact = (name: string, of: string) =>
    card(name)
      .locator('dl > div')
      .filter({ hasText: new RegExp(`^${of}`) })
      .locator('dd')
  assert.equal(await fact('mill-2', 'Version').innerText(), packageVersion())
  assert.match(await fact('mill-2', 'Memory').innerText(), /^[\d,.]+ [MG]B$/)
  assert.match(await fact('mill-2', 'Started').innerText(), /ago|now/)
  // Both are of the time between two beats.
  await fact('mill-2', 'Rate').filter({ hasText: '/s' }).waitFor()
  await fact('mill-2', 'Loop delay').filter({ hasText: /^max / }).waitFor()
  // One of an earlier version says less, and cannot be asked to stop.
  const work = { host: 'h', pid: 1, startedAtMs: Date.now(), concurrency: 2, running: 0, jobs: [] }
  const older = { type: 'greet', instance: 'older', lastJobAtMs: null, lag: null, stoppingSinceMs: null, work }
  await presenceOf(mill.engine).beat([{ ...older, status: 'RUNNING', atMs: Date.now() }], 600_000)
  for (const name of ['Version', 'Memory', 'Rate', 'Loop delay']) await fact('older', name).getByText('–').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Drain older' }).count(), 0)
  assert.deepEqual(await seriousFaults(page), [])
  await card('mill-2').getByRole('link').first().click()
  await page.getByRole('heading', { name: 'encode-film', level: 1 }).waitFor()
  assert.match(page.url(), new RegExp(`#/jobs/${id}$`))
})

test('a worker of another process is asked to drain: it finishes its job, and its process ends', async (t) => {
  const folder = await temporaryFolder(t)
  const store = { url: `sqlite:${folder}/jobs.db`, remove: () => {} }
  const { mill, visit } = await serve(t, { jobs: [untilFile], store })
  const { id } = await mill.enqueue(untilFile, { file: `${folder}/done` })
  const process = startMillrace(t, ['work', JOBS, '--types', 'until-file', '--engine', store.url])
  const page = await visit('workers')
  await page.getByRole('heading', { name: 'Runs 1 of 10 at once' }).waitFor()
  await page.getByRole('button', { name: /^Drain / }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Reason (optional)' }).fill('it leaks')
  assert.deepEqual(await seriousFaults(page), [])
  await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
  await page.getByText('Stopping', { exact: true }).waitFor()
  assert.equal((await mill.job(id))?.state, 'in_progress')
  writeFileSync(`${folder}/done`, '')
  assert.equal((await process.ended).code, 0)
  assert.equal((await mill.job(id))?.state, 'completed')
  await page.getByRole('heading', { name: 'No worker has said that it lives' }).waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click()
  await page.getByRole('row', { name: /local drained worker .* it leaks/ }).waitFor()
})

test('a queue is paused and resumed with a reason, and the audit has both', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.work([greet])
  const page = await visit('queues')
  await page.getByRole('button', { name: 'Pause greet' }).click()
  const pausing = page.getByRole('dialog', { name: 'Pause greet?' })
  await pausing.getByRole('textbox', { name: 'Reason (optional)' }).fill('the printer is jammed')
  await pausing.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByText('by local: the printer is jammed').waitFor()
  assert.deepEqual(
    (await mill.paused()).map(({ type }) => type),
    ['greet'],
  )
  await page.getByRole('button', { name: 'Resume greet' }).click()
  const resuming = page.getByRole('dialog', { name: 'Resume greet?' })
  await resuming.getByRole('button', { name: 'Resume', exact: true }).click()
  await page.getByRole('button', { name: 'Pause greet' }).waitFor()
  assert.deepEqual(await mill.paused(), [])
  await mill.result(await mill.enqueue(greet, {}))

  await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click()
  const entries = page.getByRole('row').filter({ has: page.getByRole('cell') })
  await entries.nth(1).waitFor()
  await page.getByRole('combobox', { name: 'Action' }).selectOption('pause')
  await entries.nth(1).waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /local paused greet the printer is jammed/ }).waitFor()
  await page.getByRole('textbox', { name: 'Who' }).fill('somebody else')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'No entry fits' }).waitFor()
})

test('an alert fires, is counted in the navigation, and is resolved', async (t) => {
  const breaches = [{ labels: { type: 'greet' }, value: 7, threshold: 5, text: '7 jobs of greet wait' }]
  const runbook = 'docs/runbook.md#queuedepth'
  const backlog: AlertRule = { name: 'Backlog', severity: 'warning', runbook, evaluate: () => breaches }
  let alerting: Alerting | undefined
  const { visit, ends } = await serve(t, {
    jobs: [greet],
    over: (mill) => {
      alerting = startAlerting(mill, { rules: [backlog], every: '1h' })
      return { alerting }
    },
  })
  ends.defer(async () => alerting?.stop())
  const page = await visit('alerts')
  const look = async (status: string): Promise<void> => {
    await eventually(
      async () => {
        await alerting?.evaluate()
        return alerting?.current()[0]?.status === status
      },
      `the alert is ${status}`,
      LIMIT_MS,
    )
  }
  await look('firing')
  const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Backlog' }) })
  await card.getByText('Firing · warning').waitFor()
  await card.getByText('7 jobs of greet wait').waitFor()
  await card.getByText('type=greet').waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Alerts 1' }).waitFor()
  const opened = page.context().waitForEvent('page')
  await card.getByRole('link', { name: 'What to do' }).click()
  const entry = await opened
  await entry.getByRole('heading', { name: 'QueueDepth' }).waitFor()
  assert.match(entry.url(), /\/runbook#queuedepth$/)
  await entry.close()
  breaches.length = 0
  await look('resolved')
  await card.getByText('Resolved', { exact: true }).waitFor()
  await page.getByRole('heading', { name: 'Nothing fires' }).waitFor()
})
