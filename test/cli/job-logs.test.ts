import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, open } from '../../src/index.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder } from './run.ts'

test('millrace job shows what a handler said, and follows it until the job is over', async (t) => {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const mill = await open(url)
  t.after(() => mill.close())
  const { promise: goOn, resolve: release } = Promise.withResolvers<void>()
  const send = defineJob({
    type: 'send',
    async run({ log }) {
      log.info('begins', { part: 1 })
      await goOn
      log.warn('ends\u001b[31m')
    },
  })
  await mill.work([send])
  const { id } = await mill.enqueue(send)
  while ((await mill.logs(id)).lines.length === 0) await new Promise((resolve) => setImmediate(resolve))
  const following = [
    runCli(['job', id, '--follow', '--engine', url]),
    runCli(['job', id, '--follow', '--json', '--engine', url]),
  ]
  release()
  await mill.result(id)
  const [read, json] = await Promise.all(following)
  assert.deepEqual([read?.code, read?.err], [0, ''])
  assert.match(read?.out ?? '', /INFO {2}#1 begins part=1\n.*WARN {2}#1 ends/)
  assert.ok(read?.out.includes('\u001b[31m') === false, 'what a handler says cannot paint the terminal')
  assert.deepEqual(
    jsonLines(json?.out ?? '').map(({ seq, message }) => [seq, message]),
    [
      [1, 'begins'],
      [2, 'ends\u001b[31m'],
    ],
  )
  const shown = await runCli(['job', id, '--logs', '--engine', url])
  assert.match(shown.out, /completed[\s\S]*INFO {2}#1 begins part=1/)
  const [whole] = jsonLines((await runCli(['job', id, '--logs', '--json', '--engine', url])).out)
  assert.equal(Object(whole?.log).dropped, 0)
  const silent = await mill.enqueue(send, undefined, { delay: '1h' })
  assert.match((await runCli(['job', silent.id, '--logs', '--engine', url])).out, /said nothing that is kept/)
  assert.notEqual((await runCli(['job', 'none', '--follow', '--engine', url])).code, 0)
})

test('millrace job --logs says where they are not kept', async (t) => {
  const mill = await open('memory:')
  t.after(() => mill.close())
  const bare = new Proxy(mill.engine, { get: (of, name) => (name === 'logs' ? undefined : Reflect.get(of, name)) })
  const other = await open(bare)
  await assert.rejects(other.logs('any'), { code: 'ERR_UNSUPPORTED' })
})
