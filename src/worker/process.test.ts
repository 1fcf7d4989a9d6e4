import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { open } from '../client/mill.ts'
import { defineJob } from '../job/definition.ts'

const INDEX = new URL('../index.ts', import.meta.url).href

/** Runs a worker in a process of its own; its lines are what it says. */
async function started(t: TestContext, script: string) {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-process-'))
  const url = `sqlite:${join(folder, 'jobs.db')}`
  const source = `const { open, defineJob } = await import(${JSON.stringify(INDEX)})
    const mill = await open(${JSON.stringify(url)})\n${script}`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', source]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(async () => {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const exited = once(child, 'exit')
  return { child, url, exited, line: async () => (await lines.next()).value }
}

// The renewal thread must not outlive its worker, nor any timer.
test('after stop and close the process ends by itself', { timeout: 120_000 }, async (t) => {
  const { exited, line } = await started(
    t,
    `const job = defineJob({ type: 'a', run: () => 1 })
     const worker = await mill.work([job])
     mill.events.on('worker.error', ({ during, error }) => console.log(during, error))
     await mill.result(await mill.enqueue(job, null))
     await worker.stop()
     await mill.close()`,
  )
  assert.equal(await line(), undefined)
  assert.deepEqual(await exited, [0, null])
})

// A05 B131 B132 B134 B137 X109
test('SIGTERM and SIGINT drain a process, which has stayed alive for its worker alone', {
  timeout: 240_000,
}, async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { child, url, exited, line } = await started(
      t,
      `const job = defineJob({ type: 'slow', async run({ signal }) {
         console.log('started')
         await new Promise((resolve) => process.stdin.once('data', resolve))
         process.stdin.destroy()
         return 'finished'
       } })
       const worker = await mill.work([job], { signals: true, concurrency: 1 })
       mill.events.on('worker.stopping', () => console.log('stopping'))
       void worker.stopped.then(() => mill.close())
       console.log('working')`,
    )
    assert.equal(await line(), 'working')
    const mill = await open(url)
    t.after(() => mill.close())
    const slow = defineJob({ type: 'slow' })
    const first = await mill.enqueue(slow, null)
    const second = await mill.enqueue(slow, null)
    assert.equal(await line(), 'started')
    child.kill(signal)
    // Under npm a Ctrl-C arrives twice.
    assert.equal(await line(), 'stopping')
    child.kill(signal)
    child.stdin.write('finish')
    assert.deepEqual(await exited, [0, null])
    assert.equal((await mill.job(first.id))?.result, 'finished')
    const left = await mill.job(second.id)
    assert.equal(left?.state, 'queued')
    assert.equal(left?.attempt, 0)
    assert.equal(left?.leaseOwner, null)
  }
})
