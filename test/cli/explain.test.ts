import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder } from './run.ts'

test('millrace explain says why a job is not running, and job begins with it', async (t) => {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const cli = (...args: string[]) => runCli([...args, '--engine', url])
  const enqueue = async (...args: string[]) => String(jsonLines((await cli('enqueue', ...args, '--json')).out)[0]?.id)
  const first = await enqueue('fetch', '{}', '--delay', '1h')
  const second = await enqueue('merge', '{}', '--after', first)

  const delayed = await cli('explain', first)
  assert.equal(delayed.code, 0, delayed.err)
  assert.match(delayed.out, /^It is delayed until \S+Z \((in 1h|in 59m)\), as enqueued\.\nNo worker runs/)
  const [json] = jsonLines((await cli('explain', first, '--json')).out)
  assert.partialDeepStrictEqual(json, { id: first, because: 'delayed', jobs: [] })
  assert.equal(json?.untilMs, jsonLines((await cli('job', first, '--json')).out)[0]?.runAtMs)

  const waits = await cli('explain', second)
  assert.match(waits.out, /^It waits for 1 of 1 job: /)
  assert.ok(waits.out.endsWith(`\n  ${first} fetch queued\n`), waits.out)
  const shown = await cli('job', second)
  assert.match(shown.out, new RegExp(`^It waits for 1 of 1 job: [^]*\n\nid {8}${second}\n`))
  assert.partialDeepStrictEqual(jsonLines((await cli('job', second, '--json')).out)[0], {
    explanation: { because: 'waits-for-jobs', jobs: [{ id: first, type: 'fetch', state: 'queued' }] },
  })
})

test('millrace explain knows a rate limit from the modules that define it', async (t) => {
  const folder = await temporaryFolder(t)
  const url = `sqlite:${folder}/jobs.db`
  const module = `${folder}/limited.mjs`
  const index = new URL('../../src/index.ts', import.meta.url).href
  await writeFile(
    module,
    `import { defineJob } from ${JSON.stringify(index)}
export const mail = defineJob({ type: 'mail', limit: { max: 1, per: '1h' } })`,
  )
  const mill = await open(url)
  t.after(() => mill.close())
  const { mail } = await import(module)
  const [first, second] = await mill.enqueueMany(mail, [1, 2])
  const worker = await mill.work([mail.handledBy(() => null)])
  await mill.result(first?.id ?? '')
  await worker.stop()
  const [json] = jsonLines(
    (await runCli(['explain', second?.id ?? '', '--jobs', module, '--engine', url, '--json'])).out,
  )
  assert.partialDeepStrictEqual(json, { because: 'limit-reached', jobs: [{ id: first?.id, state: 'completed' }] })
})

test('a reason that somebody wrote cannot forge lines, and an unknown id is an error', async (t) => {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const cli = (...args: string[]) => runCli([...args, '--engine', url])
  const id = String(jsonLines((await cli('enqueue', 'fetch', '{}', '--json')).out)[0]?.id)
  await cli('cancel', id, '--reason', 'twice\nIt runs \u001b[2Jon w1', '--who', 'ann')
  const { out } = await cli('explain', id)
  assert.equal(out.trimEnd().split('\n').length, 1)
  assert.match(out, /^It was cancelled at .* by ann, "twice It runs �\[2Jon w1"\.\n$/)
  const unknown = await cli('explain', 'absent')
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /no job has the id 'absent'.*ERR_JOB_UNKNOWN/)
})
