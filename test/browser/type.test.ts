/** The page of one type, with a worker of another process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { z } from 'zod'
import { untilFile } from '../cli/fixtures/jobs.ts'
import { JOBS, startMillrace, temporaryFolder } from '../cli/run.ts'
import { seriousFaults } from './axe.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

test('limits changed on the page of a type are taken up by a worker of another process, whose definition it shows', async (t) => {
  const folder = await temporaryFolder(t)
  const store = { url: `sqlite:${folder}/jobs.db`, remove: () => {} }
  // The server does not have the definition.
  const { mill, visit } = await serve(t, { jobs: [], store })
  await mill.enqueueMany(
    untilFile,
    [1, 2, 3].map(() => ({ file: `${folder}/never` })),
  )
  await mill.limits.set('until-file', { concurrency: 1 }, { who: 'ann', reason: 'test' })
  startMillrace(t, ['work', JOBS, '--types', 'until-file', '--engine', store.url])
  const page = await visit('queues')
  await page.getByRole('link', { name: 'until-file' }).click()
  await page.getByRole('heading', { name: 'until-file', level: 1 }).waitFor()
  await page.getByText('as its worker says').waitFor()
  const jobs = page.locator('dl > div').filter({ hasText: /^Jobs/ }).locator('dd')
  await jobs.filter({ hasText: '2 ready, 0 delayed, 1 running' }).waitFor()
  assert.deepEqual(await seriousFaults(page), [])

  await page.getByRole('button', { name: 'Change limits' }).click()
  const dialog = page.getByRole('dialog', { name: 'Limits of until-file' })
  await dialog.getByRole('spinbutton', { name: 'Concurrency' }).fill('3')
  await dialog.getByRole('textbox', { name: 'Reason (optional)' }).fill('a new machine')
  assert.deepEqual(await seriousFaults(page), [])
  await dialog.getByRole('button', { name: 'Change', exact: true }).click()
  await page.getByText('by local: a new machine').waitFor()
  await jobs.filter({ hasText: '0 ready, 0 delayed, 3 running' }).waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click()
  await page.getByRole('row', { name: /local changed the limits of until-file a new machine/ }).waitFor()
})

test('a job is enqueued by a form, the type is paused, and drained with a reason', async (t) => {
  const mail = defineJob({
    type: 'mail',
    payload: z.object({ to: z.email(), copies: z.int().optional(), body: z.object({ text: z.string() }) }),
    run: () => null,
  })
  const { mill, visit } = await serve(t, { jobs: [mail] })
  const page = await visit('queues/mail', { refusals: [400] })
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByRole('button', { name: 'Resume' }).waitFor()

  await page.getByRole('button', { name: 'Enqueue' }).click()
  const form = page.getByRole('dialog', { name: 'Enqueue mail' })
  await form.getByRole('textbox', { name: 'to', exact: true }).fill('nobody')
  await form.getByRole('textbox', { name: 'body.text', exact: true }).fill('Hello')
  await form.getByRole('button', { name: 'Enqueue', exact: true }).click()
  await form.getByRole('alert').filter({ hasText: /email/i }).waitFor()
  assert.deepEqual(await seriousFaults(page), [])
  await form.getByRole('textbox', { name: 'to', exact: true }).fill('ada@example.com')
  await form.getByRole('button', { name: 'Enqueue', exact: true }).click()
  await page.waitForURL(/#\/jobs\//)
  const [job] = await mill.jobs()
  assert.deepEqual(JSON.parse(job?.payload ?? ''), { to: 'ada@example.com', body: { text: 'Hello' } })

  await page.goto(page.url().replace(/#.*/, '#/queues/mail'))
  await page.getByRole('button', { name: 'Drain' }).click()
  const drain = page.getByRole('dialog', { name: 'Drain mail?' })
  await drain.getByRole('textbox', { name: /to confirm$/ }).fill('mail')
  await drain.getByRole('textbox', { name: 'Reason', exact: true }).fill('sent by mistake')
  assert.deepEqual(await seriousFaults(page), [])
  await drain.getByRole('button', { name: 'Drain', exact: true }).click()
  await page.getByText('Drained 1.').waitFor()
  assert.equal((await mill.job(job?.id ?? ''))?.state, 'cancelled')
  await page.getByRole('navigation').getByRole('link', { name: 'Audit' }).click()
  await page.getByRole('row', { name: /local drained type mail sent by mistake/ }).waitFor()
})

test('a limit over all workers for each tenant is on the page of its type, and on that of a job that waits for it', async (t) => {
  const release = Promise.withResolvers<void>()
  const sync = defineJob({ type: 'sync', concurrency: { max: 1, by: 'tenant' }, run: () => release.promise })
  const { mill, visit, ends } = await serve(t, { jobs: [sync] })
  const [acme, other] = [{ orgId: 'acme' }, { orgId: 'other' }]
  const ids = []
  for (const tenant of [acme, acme, other]) ids.push((await mill.enqueue(sync, null, { tenant })).id)
  await mill.work([sync], { drain: 0 })
  ends.defer(release.resolve)
  const page = await visit('queues/sync')
  await page.getByText('1 (over all workers, for each tenant)').waitFor()
  const jobs = page.locator('dl > div').filter({ hasText: /^Jobs/ }).locator('dd')
  await jobs.filter({ hasText: '1 ready, 0 delayed, 2 running' }).waitFor()
  assert.deepEqual(await seriousFaults(page), [])
  await page.goto(page.url().replace(/#.*/, `#/jobs/${ids[1]}`))
  await page
    .getByText(/The only slot .*acme.* over all workers is/)
    .first()
    .waitFor()
  release.resolve()
  await page.getByText('Completed').first().waitFor()
})
