import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENGINES, stageOn } from '../../test/fixtures/admin.ts'

for (const url of ENGINES) {
  test(`jobs on ${url} are found by id, type, key, tenant and error, whatever the case`, async (t) => {
    const { mill, ask, bury } = await stageOn(t, url)
    const { id } = await mill.enqueue(
      'bill',
      { n: 1 },
      { key: 'Order-77', tenant: { orgId: 'acme', workspaceId: 'north' } },
    )
    const dead = await bury('mail', 'no mailbox FOR-ANN')
    const search = async (text: string) => {
      const { items } = await ask('listJobs', { query: { search: text } })
      return items.map((job) => job.id).toSorted()
    }
    for (const text of [id, id.slice(-8).toLowerCase(), 'order-77', 'ACME', 'North', 'BIL']) {
      assert.deepEqual(await search(text), [id], text)
    }
    assert.deepEqual(await search('for-ann'), [dead])
    assert.deepEqual(await search('nobody'), [])
    const { items } = await ask('listJobs', { query: { search: 'a', state: 'queued' } })
    assert.deepEqual(
      items.map((job) => job.id),
      [id],
      'with a filter',
    )
  })
}

test('a search says how far it has looked, and what is wrong with it', async (t) => {
  const { mill, ask, send, bury } = await stageOn(t, 'sqlite:', { jobs: [] })
  const { id } = await mill.enqueue('bill', { n: 42 }, { tags: ['import-7'] })
  const dead = await bury('mail', 'no mailbox')
  const found = await ask('listJobs', {
    query: { search: 'tag:import-7 payload.n:42 since:1h', type: 'bill' },
  })
  assert.deepEqual([found.items.map((job) => [job.id, job.tags]), found.next], [[[id, ['import-7']]], null])
  assert.equal(found.searched?.looked, 1)
  assert.equal((await ask('listJobs', { query: {} })).searched, null)
  const letters = await ask('listDeadLetters', { query: { search: 'error:mailbox since:1h' } })
  assert.deepEqual([letters.items.map(({ job }) => job.id), letters.searched?.looked], [[dead], 1])
  const { groups } = await ask('groupDeadLetters', { query: { search: 'tag:import-7' } })
  assert.deepEqual(groups, [])
  for (const [search, says] of [
    ['tpye:bill', /'tpye' is not a field/],
    ['since:soon', /'since' is 'soon'; give how long ago/],
    ['payload.password:x', /'payload.password' is redacted, so it cannot be searched/],
    ['error:"open', /a quote in the search is not closed/],
  ] as const) {
    for (const route of ['replayDeadLetters', 'discardDeadLetters', 'purgeDeadLetters', 'eraseJobs'] as const) {
      const { status, body } = await send(route, { body: { selection: { search }, reason: 'x' } })
      assert.deepEqual([status, says.test(String(body.message))], [400, true], `${route} ${search}: ${body.message}`)
    }
    for (const route of ['listJobs', 'listDeadLetters'] as const) {
      const { status, body } = await send(route, { query: { search } })
      assert.deepEqual([status, says.test(String(body.message))], [400, true], `${route} ${search}: ${body.message}`)
    }
  }
  assert.deepEqual((await ask('listOperations', {})).operations, [], 'none has begun')
  const twice = await send('listJobs', { query: { search: 'type:bill', type: 'mail' } })
  assert.equal(twice.status, 400)
})

test('dead letters are acted on by a search, and a dry run gives back what it counted', async (t) => {
  const { mill, ask, bury } = await stageOn(t, 'memory:')
  await bury('mail', 'no mailbox')
  await bury('mail', 'greylisted')
  const selection = { search: 'error:mailbox since:1h' }
  const dry = await ask('discardDeadLetters', { body: { selection, dryRun: true, reason: 'test' } })
  assert.equal(dry.outcome?.done, 1)
  assert.ok(dry.outcome && 'sinceMs' in dry.outcome.selection && dry.outcome.selection.search === 'error:mailbox')
  await ask('discardDeadLetters', { body: { selection: dry.outcome.selection, reason: 'test' } })
  const left = async () => (await mill.engine.deadLetters?.list({ limit: 10 }))?.length
  while ((await left()) !== 1) await new Promise((resolve) => setImmediate(resolve))
})

test('a cursor of another list, or none at all, is refused', async (t) => {
  const { send } = await stageOn(t, 'memory:')
  const made = (place: unknown) => Buffer.from(JSON.stringify(place)).toString('base64url')
  for (const cursor of ['x', made([1]), made(['a', 'b']), made(null), made([{}]), made(['a\0'])]) {
    const { status, body } = await send('listJobs', { query: { cursor } })
    assert.deepEqual([status, body.issues?.[0]?.path], [400, 'query.cursor'], cursor)
  }
  for (const cursor of [made(['a']), made([1]), made([-1, 'a']), made([1e300, 'a'])]) {
    assert.equal((await send('listDeadLetters', { query: { cursor } })).status, 400)
  }
})
