import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder } from './run.ts'

// B04
test('a job is enqueued after others, and shows whom it waits for', async (t) => {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const cli = (...args: string[]) => runCli([...args, '--engine', url])
  const enqueue = async (...args: string[]) => String(jsonLines((await cli('enqueue', ...args, '--json')).out)[0]?.id)
  const a = await enqueue('fetch', '{}')
  const b = await enqueue('fetch', '{}', '--priority', '9')
  const merge = await enqueue('merge', '{}', '--after', `${a},${b}`, '--if-dead', 'run')

  const mill = await open(url)
  t.after(() => mill.close())
  const worker = await mill.work([defineJob({ type: 'fetch', run: () => null })], { concurrency: 1 })
  await mill.result(a)
  await mill.result(b)
  await worker.stop()
  const late = await enqueue('late', '{}', '--after', merge)

  const shown = await cli('job', merge)
  assert.match(shown.out, /after {5}2 of 2 completed, if one is dead: run\n/)
  assert.ok(shown.out.includes(`${a} fetch completed\n`), shown.out)
  const waits = await cli('job', late)
  assert.match(waits.out, /after {5}0 of 1 completed, if one is dead: wait\n/)
  assert.ok(waits.out.includes(`${merge} merge queued\n`), waits.out)
  const [json] = jsonLines((await cli('job', late, '--json')).out)
  assert.deepEqual(json?.after, { ids: [merge], ifDead: 'wait' })
  assert.deepEqual(json?.predecessors, [{ id: merge, type: 'merge', state: 'queued' }])
  assert.ok((await cli('jobs')).out.includes(`after ${merge}`))
})

test('what cannot be waited for is refused', async (t) => {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const refused = async (...args: string[]) => (await runCli(['enqueue', 'merge', '{}', ...args, '--engine', url])).err
  assert.match(await refused('--after', '01ARZ3NDEKTSV4RRFFQ69G5FAV'), /no job has the id/)
  assert.match(await refused('--after', 'x', '--if-dead', 'panic'), /'if-dead' is 'panic'; give wait, run or die/)
  assert.match(await refused('--if-dead', 'run'), /add 'after'/)
  assert.match(await refused('--after', 'x', '--latest', 'k'), /contradict/)
  assert.equal((await runCli(['jobs', '--json', '--engine', url])).out, '')
})
