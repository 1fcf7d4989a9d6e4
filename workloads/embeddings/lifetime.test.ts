import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { createEmbeddingQueue, type Embedding, MemoryEmbeddings } from './index.ts'
import { Rig, withRig } from './rig.ts'

const down = (): Error => new Error('service down')
const empty = { pending: 0, inFlight: 0, dlqSize: 0, uniqueEntries: 0, retrying: 0, dlqDropped: 0 }

describe('draining and closing', () => {
  // X140
  test(
    'drain waits for the pending, the running and the retrying',
    withRig({ hold: true, maxConcurrency: 1 }, async (rig) => {
      assert.equal(await rig.queue.drain(1_000), true, 'an empty queue is drained')
      rig.enqueue('a', 'a1')
      rig.enqueue('b', 'b1')
      let drained: boolean | null = null
      const draining = rig.queue.drain(60_000).then((answer) => {
        drained = answer
      })
      await rig.settle()
      rig.call(0).fail(down())
      await rig.settle()
      rig.call(1).succeed()
      await rig.clock.advance(1_999)
      assert.equal(drained, null, 'drained with a retry outstanding')
      await rig.clock.advance(1)
      rig.call(2).succeed()
      await rig.settle()
      assert.equal(drained, true)
      await draining
      assert.deepEqual(rig.queue.getQueueStats(), empty)
    }),
  )

  // X140
  test(
    'drain gives up after its time',
    withRig({ hold: true }, async (rig) => {
      rig.enqueue('a', 'a1')
      const draining = rig.queue.drain(1_000)
      await rig.clock.advance(1_000)
      assert.equal(await draining, false)
    }),
  )

  // X142
  test(
    'cancelling the last entry ends a drain',
    withRig({ hold: true }, async (rig) => {
      rig.enqueue('a', 'a1')
      await rig.settle()
      const draining = rig.queue.drain(60_000)
      rig.queue.cancel('guideline', 'a')
      assert.equal(await draining, true)
    }),
  )

  // X140
  test('close says what it leaves behind, ends a drain and takes no more', async () => {
    const rig = new Rig({ hold: true, maxConcurrency: 1, drainMs: 1_000 })
    await rig.settle()
    rig.enqueue('a', 'a1')
    await rig.settle()
    rig.call(0).fail(down())
    await rig.settle()
    rig.enqueue('b', 'b1')
    rig.enqueue('c', 'c1')
    await rig.settle()
    const draining = rig.queue.drain(600_000)
    await rig.close()
    assert.equal(await draining, false)
    assert.equal(rig.call(1).signal.aborted, true)
    const fields = { pending: 3, retrying: 0, dlqSize: 0 }
    assert.deepEqual(rig.log, [{ level: 'warn', text: 'The embedding queue was closed with entries left', fields }])
    assert.throws(() => rig.enqueue('d', 'd1'), { code: 'ERR_CLOSED' })
    assert.equal(rig.queue.close(), rig.queue.close())
  })

  // C12
  test('nothing outlives the queue', async () => {
    const rig = new Rig({ hold: true })
    rig.enqueue('a', 'a1')
    await rig.close()
    const next = new Rig()
    await next.settle()
    assert.deepEqual(next.queue.getQueueStats(), empty)
    assert.deepEqual(next.calls, [])
    await next.close()
  })
})

describe('memory', () => {
  // X133
  test(
    'an idle entry is forgotten, so its numbers start anew',
    withRig({}, async (rig) => {
      rig.enqueue('e', 'v5', 5)
      await rig.settle()
      assert.equal(rig.queue.find('guideline', 'e'), null)
      rig.enqueue('e', 'v4', 4)
      await rig.settle()
      // It ran, because the queue knows nothing of the entry any more; the store still refuses the older vector (X131).
      assert.deepEqual(rig.contents, ['v5', 'v4'])
      assert.equal(rig.stored('e'), 'v5')
    }),
  )

  // X132
  test('after a restart a store that compares versions, not seq, keeps the newest', async () => {
    const kept = new Map<string, Embedding>()
    const store = {
      save(embedding: Embedding): boolean {
        const stored = kept.get(embedding.entryId)
        if (stored !== undefined && stored.versionId > embedding.versionId) return false
        kept.set(embedding.entryId, embedding)
        return true
      },
    }
    const before = new Rig({ store })
    for (const version of ['2026-01-01', '2026-01-02', '2026-01-03']) {
      before.enqueue('e', version)
      await before.settle()
    }
    await before.close()
    assert.equal(kept.get('e')?.seq, 3)
    const after = new Rig({ store })
    after.enqueue('e', '2026-01-04')
    await after.settle()
    assert.deepEqual([kept.get('e')?.versionId, kept.get('e')?.seq], ['2026-01-04', 1])
    after.enqueue('e', '2026-01-02')
    await after.settle()
    assert.equal(kept.get('e')?.versionId, '2026-01-04')
    await after.close()
  })
})

const index = new URL('./index.ts', import.meta.url).href
/** Fails once, so that a retry is outstanding two seconds later. */
const failsOnce = `
  import { createEmbeddingQueue, MemoryEmbeddings } from ${JSON.stringify(index)}
  const store = new MemoryEmbeddings()
  let runs = 0
  const embed = async () => { runs += 1; if (runs === 1) throw new Error('down'); return [1] }
  const queue = createEmbeddingQueue({ embed, store })
  process.on('exit', () => console.log(JSON.stringify({ runs, ...queue.getQueueStats(), drained })))
  let drained = null
  queue.enqueue({ entryType: 'tool', entryId: 'e', versionId: 'v', content: 'c' })
`

async function runScript(script: string): Promise<Readonly<Record<string, unknown>>> {
  const flags = ['--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 120_000 })
  return JSON.parse(stdout)
}

describe('real time', () => {
  // X140
  test('a retry that waits does not keep the process alive', async () => {
    const left = await runScript(failsOnce)
    assert.deepEqual([left.runs, left.retrying], [1, 1])
  })

  // X140
  test('draining does, until the retry is done', async () => {
    const left = await runScript(`${failsOnce}; drained = await queue.drain(100_000)`)
    assert.deepEqual([left.runs, left.retrying, left.drained], [2, 0, true])
  })

  // C17 C18
  test('on the system clock the work starts at once and close returns', async () => {
    const store = new MemoryEmbeddings()
    const queue = createEmbeddingQueue({ embed: (content) => [content.length], store })
    queue.enqueue({ entryType: 'tool', entryId: 'e', versionId: 'v', content: 'four' })
    assert.equal(await queue.drain(60_000), true)
    assert.deepEqual(store.get('tool', 'e')?.vector, [4])
    await queue.close()
  })
})

// C37
test('the README names an equivalent that exists for each file of the original design', async () => {
  const readme = await readFile(new URL('README.md', import.meta.url), 'utf8')
  for (const name of ['repositories/embedding-hooks.ts', 'services/embedding.service.ts', 'sections/embedding.ts']) {
    const line = readme.split('\n').find((row) => row.startsWith('|') && row.includes(name))
    assert.ok(line, `${name} has no row`)
    const [, , here = ''] = line.split('|')
    const files = [...here.matchAll(/`([a-z-]+\.ts)`/g)].map(([, file = '']) => file)
    assert.ok(files.length > 0, `${name} has no equivalent`)
    for (const file of files) assert.ok(existsSync(new URL(file, import.meta.url)), file)
  }
})
