/** What a job said, where its time went, its flow, and what was changed in its payload by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, openDesk } from 'millrace'
import { z } from 'zod'
import { seriousFaults } from './axe.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

test('what a handler says appears while it runs, with its attempts and waits, and its flow both ways', async (t) => {
  const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
  const part = defineJob({ type: 'part', run: () => 1 })
  const build = defineJob({
    type: 'build',
    backoff: { kind: 'fixed', delay: '10ms' },
    async run({ log, job, progress }) {
      log.info('begins', { bytes: 12, token: 'abc' })
      if (job.attempt === 1) throw new Error('not yet')
      await progress(50)
      await goOn
      log.warn('nearly done')
    },
  })
  const jobs = [part, build]
  const { mill, visit } = await serve(t, { jobs })
  const flow = await mill.enqueueFlow({
    wheel: { job: part, payload: {} },
    mill: { job: build, payload: {}, after: 'wheel' },
    sail: { job: part, payload: {}, after: 'mill' },
  })
  const page = await visit(`jobs/${flow.mill.id}`)
  const graph = page.getByRole('region', { name: 'Jobs of this flow' })
  await graph
    .getByRole('link', { name: /^part Queued/ })
    .nth(1)
    .waitFor()
  assert.equal(await graph.locator('path').count(), 2)
  await page.getByText('said nothing that is kept').waitFor()

  await mill.work(jobs)
  const log = page.getByRole('region', { name: 'Log of the job' })
  await log
    .getByRole('listitem')
    .filter({ hasText: 'attempt 2' })
    .filter({ hasText: 'bytes=12 token=[redacted]' })
    .waitFor()
  const times = page.getByRole('list', { name: 'Attempts and waits' })
  await times.getByRole('listitem').filter({ hasText: 'Attempt 1' }).filter({ hasText: 'failed after' }).waitFor()
  await times.getByRole('listitem').filter({ hasText: 'Attempt 2' }).filter({ hasText: 'progress 50 %' }).waitFor()
  await times.getByRole('button', { name: /^waiting to be retried: 10 ms, from/ }).focus()
  assert.deepEqual(await seriousFaults(page), [])

  release()
  await log.getByRole('listitem').filter({ hasText: 'warn' }).filter({ hasText: 'nearly done' }).waitFor()
  await times.getByRole('listitem').filter({ hasText: 'completed after' }).waitFor()
  await graph
    .getByRole('link', { name: /^part Completed/ })
    .nth(1)
    .waitFor()
  await graph
    .getByRole('link', { name: /^part Completed/ })
    .first()
    .click()
  await page.getByRole('heading', { name: 'part', level: 1 }).waitFor()
  await graph.getByRole('link', { name: /^build Completed/ }).waitFor()
})

test('a payload that was edited shows what changed, in the timeline and in the audit', async (t) => {
  const mail = defineJob({
    type: 'mail',
    attempts: 1,
    payload: z.object({ to: z.string(), pin: z.string().meta({ writeOnly: true }) }),
    run({ payload, log }) {
      log.error('no such mailbox')
      if (payload.to === 'ann') throw new Error('no such mailbox')
    },
  })
  const { mill, visit } = await serve(t, { jobs: [mail] })
  await mill.work([mail])
  const { id } = await mill.enqueue(mail, { to: 'ann', pin: '1234' })
  await mill.result(id).catch(() => {})
  const letter = await visit(`dead-letters/${id}`)
  await letter.getByRole('region', { name: 'Log of the job' }).getByText('no such mailbox').waitFor()
  await letter.getByRole('list', { name: 'Attempts and waits' }).getByText('failed after').waitFor()
  // An open page of the letter would ask for it again once it is replayed, and show a 404 in the browser's console.
  await letter.close()
  const desk = openDesk(mill, { jobs: [mail] })
  await desk.replay(id, { who: 'ann', reason: 'a typo' }, { payload: { to: 'bob', pin: '5678' } })
  await mill.result(id)
  const page = await visit(`jobs/${id}`)
  const replay = page.getByRole('listitem').filter({ hasText: 'Replayed by hand' })
  await replay.getByText('"ann"').waitFor()
  assert.deepEqual(await replay.locator('del, ins').allTextContents(), ['"ann"', '"bob"'])
  await replay.getByRole('listitem').filter({ hasText: 'pin' }).filter({ hasText: 'values not shown' }).waitFor()
  assert.equal(await page.getByText('5678').count(), 0)
  assert.deepEqual(await seriousFaults(page), [])
  const audit = await visit('audit')
  const row = audit.getByRole('row').filter({ hasText: 'payload edited' })
  await row.getByText('"bob"').waitFor()
  assert.deepEqual(await row.locator('del, ins').allTextContents(), ['"ann"', '"bob"'])
})
