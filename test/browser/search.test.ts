/** The search of jobs and of dead letters, and the tags that lead to it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { seriousFaults } from './axe.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const mail = defineJob({
  type: 'mail',
  attempts: 1,
  run: ({ payload }) => {
    throw new Error(`no mailbox for ${Object(payload).to}`)
  },
})
const later = defineJob({ type: 'later' })

test('jobs are found by fields and words, and a link restores the view', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [mail, later] })
  await mill.enqueue(later, { customer: { id: 42 } }, { tags: ['import-7', 'eu west'] })
  await mill.enqueue(later, { customer: { id: 7 } }, { tags: ['import-7'] })
  await mill.enqueue(later, { customer: { id: 8 } })

  const page = await visit('jobs', { refusals: [400] })
  const rows = page.getByRole('row').filter({ has: page.getByRole('cell') })
  await rows.nth(2).waitFor()
  // The chip of a tag leads to what has the same tag.
  await rows.getByRole('link', { name: 'import-7', exact: true }).first().click()
  await rows.nth(2).waitFor({ state: 'detached' })
  assert.equal(await rows.count(), 2)
  assert.match(page.url(), /#\/jobs\?search=tag%3Aimport-7$/)

  const field = page.getByRole('combobox', { name: 'Search jobs' })
  assert.equal(await field.inputValue(), 'tag:import-7')
  await field.fill('tag:import-7 payload.customer.id:42 since:1h')
  await rows.nth(1).waitFor({ state: 'detached' })
  await rows.getByRole('link', { name: 'eu west' }).waitFor()
  assert.deepEqual(await seriousFaults(page), [])
  const address = page.url()

  await field.fill('tpye:later')
  await page.getByRole('alert').filter({ hasText: "'tpye' is not a field of a search" }).waitFor()
  await field.fill('payload.password:x')
  await page.getByRole('alert').filter({ hasText: 'is redacted, so it cannot be searched' }).waitFor()

  await page.goto(address)
  await rows.getByRole('link', { name: 'eu west' }).waitFor()
  assert.equal(await rows.count(), 1)
  assert.equal(await field.inputValue(), 'tag:import-7 payload.customer.id:42 since:1h')
  await rows.getByRole('link', { name: 'eu west' }).click()
  await page.waitForURL(/search=tag%3A%22eu\+west%22$/)
  assert.equal(await rows.count(), 1)
})

test('dead letters are found by tag and error, and discarded as the search has them', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [mail] })
  await mill.work([mail])
  await mill.enqueue(mail, { to: 'ann' }, { tags: ['import-7'] })
  await mill.enqueue(mail, { to: 'bob' })
  while ((await mill.counts()).mail?.dead !== 2) await new Promise((resolve) => setTimeout(resolve, 20))

  const page = await visit('dead-letters')
  const table = page.getByRole('table', { name: 'Dead letters' })
  const rows = table.getByRole('row').filter({ has: page.getByRole('cell') })
  await rows.nth(1).waitFor()
  await rows.getByRole('link', { name: 'import-7' }).click()
  await rows.nth(1).waitFor({ state: 'detached' })
  await rows.filter({ hasText: 'no mailbox for ann' }).waitFor()
  const field = page.getByRole('combobox', { name: 'Search dead letters' })
  await field.fill('error:"mailbox for bob" since:1h')
  await rows.filter({ hasText: 'no mailbox for bob' }).waitFor()
  assert.deepEqual(await seriousFaults(page), [])
  await page.reload()
  await rows.filter({ hasText: 'no mailbox for bob' }).waitFor()
  assert.equal(await rows.count(), 1)
  assert.equal(await field.inputValue(), 'error:"mailbox for bob" since:1h')
})
