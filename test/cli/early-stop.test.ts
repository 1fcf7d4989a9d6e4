/** A signal before a command has begun, and a reader of its log that goes away. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { open } from 'millrace'
import { freshName, startKafka, withAdmin } from '../servers/kafka.ts'
import { JOBS, MAIN, ROOT, Running, startMillrace, startScript, temporaryFolder, until } from './run.ts'

/** A server that takes connections and never says a word. */
async function silentServer(t: TestContext): Promise<{ address: string; met: Promise<void> }> {
  const met = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    met.resolve()
  })
  t.after(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return { address: `127.0.0.1:${address.port}`, met: met.promise }
}

/** Long timeouts, so that nothing but the signal can have ended it. */
const URLS = {
  postgres: (address: string) => `postgres://${address}/jobs`,
  redis: (address: string) => `redis://${address}`,
  kafka: (address: string) => `kafka://${address}?timeout=600000`,
} as const

describe('a signal while the store is being opened', () => {
  for (const [engine, url] of Object.entries(URLS)) {
    it(`ends 'work' on ${engine} at once, and well`, async (t) => {
      const { address, met } = await silentServer(t)
      const worker = startMillrace(t, ['work', JOBS, '--engine', url(address)])
      await Promise.race([met, worker.ended])
      worker.child.kill('SIGTERM')
      const { code, signal, err } = await worker.ended
      assert.deepEqual([code, signal, err], [0, null, ''])
    })
  }

  for (const command of [['keep'], ['serve', '--port', '0'], ['start', '--port', '0'], ['top']] as const) {
    it(`ends '${command[0]}' at once, and well`, async (t) => {
      const { address, met } = await silentServer(t)
      const running = startMillrace(t, [...command, '--engine', URLS.kafka(address)])
      await Promise.race([met, running.ended])
      running.child.kill('SIGTERM')
      const { code, signal, err } = await running.ended
      assert.deepEqual([code, signal, err], [0, null, ''])
    })
  }

  it('ends the tour', async (t) => {
    const { address, met } = await silentServer(t)
    const args = ['--port', '0', '--engine', URLS.kafka(address)]
    const tour = startScript(t, join(ROOT, 'examples/tour/main.ts'), args, { cwd: await temporaryFolder(t) })
    await Promise.race([met, tour.ended])
    tour.child.kill('SIGTERM')
    const { code, signal, err } = await tour.ended
    assert.deepEqual([code, signal, err], [0, null, ''])
  })
})

describe('a signal while a worker joins its group', () => {
  it('ends it well, and the group does not wait for it', async (t) => {
    // A new group waits for others; long enough that nothing but the signal can have ended the wait.
    const server = await startKafka({ 'group.initial.rebalance.delay.ms': '120000' })
    t.after(() => server.end())
    const group = freshName('joining')
    const membersOf = async () =>
      withAdmin(server, async (admin) => {
        const found = (await admin.describeGroups({ groups: [group] })).get(group)
        return found?.members.size ?? 0
      })
    const url = `${server.url}?group=${group}&session=60000`
    const worker = startMillrace(t, ['work', JOBS, '--types', 'until-file', '--engine', url])
    await until(async () => (await membersOf()) === 1)
    worker.child.kill('SIGTERM')
    const { code, signal, err } = await worker.ended
    assert.deepEqual([code, signal, err], [0, null, ''])
    assert.equal(await membersOf(), 0)
  })
})

describe('a command that lost the reader of its log', () => {
  it('works on, drains when it is told to stop, and says so by its exit code', async (t) => {
    const folder = await temporaryFolder(t)
    const url = `sqlite:${join(folder, 'jobs.db')}`
    const { greet, untilFile } = await import('./fixtures/jobs.ts')
    const mill = await open(url, { jobs: [greet, untilFile] })
    t.after(() => mill.close())
    const go = join(folder, 'go')
    const { id } = await mill.enqueue('until-file', { file: go })
    const worker = startMillrace(t, ['work', JOBS, '--engine', url])
    await worker.said('Job started')
    worker.child.stdout?.destroy()
    const other = await mill.enqueue('greet', { name: 'Ada' })
    assert.deepEqual(await mill.result(other.id, { timeout: '2m' }), { greeting: 'Hello Ada' })
    await writeFile(go, '')
    await mill.result(id, { timeout: '2m' })
    worker.child.kill('SIGTERM')
    const { code, signal, err } = await worker.ended
    assert.deepEqual([code, signal], [1, null])
    assert.match(err, /^the reader of the log is gone/)
    assert.deepEqual(await mill.jobs({ state: 'in_progress' }), [])
  })

  it('works on also when its errors went the same way', async (t) => {
    const folder = await temporaryFolder(t)
    const url = `sqlite:${join(folder, 'jobs.db')}`
    const { greet } = await import('./fixtures/jobs.ts')
    const mill = await open(url, { jobs: [greet] })
    t.after(() => mill.close())
    const worker = new Running(MAIN, ['work', JOBS, '--engine', url])
    t.after(() => worker.child.kill('SIGKILL'))
    await worker.said('worker_id')
    worker.child.stdout?.destroy()
    worker.child.stderr?.destroy()
    for (const name of ['Ada', 'Eve']) {
      const { id } = await mill.enqueue('greet', { name })
      assert.deepEqual(await mill.result(id, { timeout: '2m' }), { greeting: `Hello ${name}` })
    }
    worker.child.kill('SIGTERM')
    assert.equal((await worker.ended).code, 1)
  })
})

describe('the tour on a port that is taken', () => {
  it('says so and ends', async (t) => {
    const { address } = await silentServer(t)
    const args = ['--port', address.slice(address.indexOf(':') + 1)]
    const tour = startScript(t, join(ROOT, 'examples/tour/main.ts'), args, { cwd: await temporaryFolder(t) })
    const { code, err } = await tour.ended
    assert.equal(code, 1)
    assert.match(err, /^error: port \d+ of 127\.0\.0\.1 is in use/)
  })
})
