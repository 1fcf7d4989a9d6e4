import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { drain } from '../../src/testing/index.ts'
import { openMemories } from '../../workloads/memories/index.ts'
import { storeBytes } from '../fixtures/store-bytes.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder } from './run.ts'

const ANN = { workspaceId: 'w1', userId: 'ann' }

/** Two memories that were merged, and one of another user. */
async function stored(t: TestContext) {
  const url = `sqlite:${join(await temporaryFolder(t), 'm.db')}`
  await using memories = await openMemories({ engine: url })
  const saved = await memories.rememberAll([
    { ...ANN, content: 'Ann drinks green tea.' },
    { ...ANN, content: 'Green tea is what Ann drinks.' },
    { workspaceId: 'w1', userId: 'bob', content: 'Bob has a bike.' },
  ])
  await drain(memories.mill, memories.jobs)
  await memories.consolidate(ANN)
  await drain(memories.mill, memories.jobs)
  const [synthesis] = await memories.repository.list(ANN, { type: 'semantic' })
  return { engine: ['--engine', url], ids: saved.map(({ id }) => id), synthesis: synthesis?.id ?? '' }
}

describe('millrace memories', () => {
  it('lists, searches and shows', async (t) => {
    const { engine, ids, synthesis } = await stored(t)
    const { code, out, err } = await runCli(['memories', 'list', '--user', 'ann', ...engine])
    assert.deepEqual([code, err], [0, ''])
    const [head = '', ...rows] = out.trimEnd().split('\n')
    assert.match(head, /^ID +CREATED +WORKSPACE +USER +TYPE +IMPORTANCE +CONTENT$/)
    assert.equal(rows.length, 3)
    assert.match(out, /w1 +ann +episodic +0\.250 +Ann drinks green tea\./)
    const typed = await runCli(['memories', 'list', '--type', 'semantic', '--json', ...engine])
    assert.deepEqual(
      jsonLines(typed.out).map(({ id }) => id),
      [synthesis],
    )
    const search = async (user: string) =>
      jsonLines(
        (await runCli(['memories', 'search', '--workspace', 'w1', '--user', user, '--json', ...engine, 'bike'])).out,
      )
    assert.deepEqual([(await search('ann')).length, (await search('bob')).length], [0, 1])
    const shown = await runCli(['memories', 'show', synthesis, '--json', ...engine])
    assert.partialDeepStrictEqual(jsonLines(shown.out), [
      { id: synthesis, sourceType: 'consolidation', mergedFrom: ids.slice(0, 2).toSorted() },
    ])
    assert.match(
      (await runCli(['memories', 'show', ids[0] ?? '', ...engine])).out,
      new RegExp(`mergedInto +${synthesis}`),
    )
  })

  it('forgets with what was merged, after --yes', async (t) => {
    const { engine, ids, synthesis } = await stored(t)
    const [first = ''] = ids
    const refused = await runCli(['memories', 'forget', first, ...engine])
    assert.equal(refused.code, 2)
    assert.match(refused.err, /add --yes/)
    const dry = await runCli(['memories', 'forget', first, '--dry-run', ...engine])
    assert.equal(dry.out, 'Would remove: 1 memory, 1 synthesis.\n')
    const done = await runCli(['memories', 'forget', first, '--yes', '--json', ...engine])
    assert.partialDeepStrictEqual(jsonLines(done.out), [
      { memories: [first], derived: [synthesis], vectors: 2, vectorsLeft: false },
    ])
    const left = jsonLines((await runCli(['memories', 'list', '--json', ...engine])).out)
    assert.deepEqual(left.map(({ id }) => id).toSorted(), ids.slice(1).toSorted())
    const audit = await runCli(['audit', '--json', ...engine])
    assert.match(audit.out, new RegExp(first))
  })

  it('says why the audit has no entry of what was forgotten', async (t) => {
    const { engine, ids } = await stored(t)
    const file = new DatabaseSync(String(engine[1]).slice('sqlite:'.length))
    file.exec(`CREATE TRIGGER full BEFORE INSERT ON job_audit BEGIN SELECT raise(ABORT, 'the audit is full'); END`)
    file.close()
    const { code, out, err } = await runCli(['memories', 'forget', ids[2] ?? '', '--yes', ...engine])
    assert.deepEqual([code, out], [0, 'Removed: 1 memory, 1 vector.\n'])
    assert.match(err, /forgotten, but not recorded in the audit: .*the audit is full/)
  })

  it('says when another process keeps it from erasing, and finishes when it is run again', async (t) => {
    const { engine, ids } = await stored(t)
    const file = String(engine[1]).slice('sqlite:'.length)
    const reader = new DatabaseSync(file, { readOnly: true })
    t.after(() => reader.close())
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM memories').get()
    const forget = () => runCli(['memories', 'forget', ...ids, '--yes', ...engine])
    const first = await forget()
    assert.deepEqual([first.code, first.out], [1, 'Removed: 3 memories, 1 synthesis, 4 vectors.\n'])
    assert.match(first.err, /may still be in it.*run the same command again.*ERR_STORAGE_BUSY/s)
    assert.ok(storeBytes(file).includes('green tea'))
    reader.exec('COMMIT')
    const second = await forget()
    assert.deepEqual([second.code, second.out, second.err], [0, 'Removed: nothing was left.\n', ''])
    assert.ok(!storeBytes(file).includes('green tea'))
  })

  it('says what is wrong with an unknown id, a missing file or missing tables', async (t) => {
    const { engine } = await stored(t)
    assert.match((await runCli(['memories', 'show', 'nobody', ...engine])).err, /no memory has the id 'nobody'/)
    const folder = await temporaryFolder(t)
    const nowhere = `sqlite:${join(folder, 'none.db')}`
    assert.match((await runCli(['memories', 'list', '--engine', nowhere])).err, /there is no file/)
    await runCli(['migrate', '--engine', nowhere])
    assert.match((await runCli(['memories', 'list', '--engine', nowhere])).err, /millrace migrate --workload memories/)
    assert.equal((await runCli(['migrate', '--workload', 'memories', '--engine', nowhere])).code, 0)
    assert.equal((await runCli(['memories', 'list', '--engine', nowhere])).out, 'No memories.\n')
  })
})
