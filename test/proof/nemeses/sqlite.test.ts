/** Each fault of the file of a round is seen by who uses it while it lasts, and is healed when its strike resolves. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { lookupOf } from '../../../src/engine/capability-checks.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { openEngine } from '../../../src/engine/open.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { newJob } from '../../fixtures/new-job.ts'
import { openSqlite } from '../engines/sqlite.ts'
import type { Crew, Scene, Store } from '../scene.ts'

/** What is seen of each. `gone`: a job that was stored before it; `undone`: one that was stored while it lasted. */
const SEEN: Readonly<Record<string, readonly string[]>> = {
  'disk-full': ['ERR_STORAGE_FULL'],
  'disk-stalls': ['slow'],
  'disk-slow': ['slow'],
  'file-locked': ['slow'],
  'file-read': ['unfolded'],
  'file-vacuumed': ['compact'],
  'schema-added': ['later'],
  'schema-newer': ['ERR_SCHEMA_NEWER'],
  'file-moved': ['ERR_STORAGE_REPLACED', 'restarted'],
  'file-deleted': ['ERR_STORAGE_REPLACED', 'gone', 'restarted'],
  'file-swapped': ['ERR_STORAGE_REPLACED', 'restarted', 'undone'],
  'backup-restored': ['restarted', 'undone'],
  'log-removed': ['restarted'],
  'index-removed': ['restarted'],
}
/** Of the time that they can take: long enough to be noticed on a busy machine. */
const SHARE = 0.3
/** A slow disk is looked for as this, and a busy machine may look like it. */
const SLOW_MS = 40

const folder = mkdtempSync(join(tmpdir(), 'millrace-nemeses-'))
let store: Store
let file: string
let engine: Engine

async function openIt(): Promise<void> {
  engine = await openEngine(store.url, { clock: systemClock, migrate: true })
}

async function storeOne(): Promise<string> {
  const [receipt] = await engine.enqueue([newJob()])
  assert.ok(receipt)
  return receipt.id
}

before(async () => {
  store = await openSqlite({ seed: 1, folder })
  file = store.url.slice('sqlite:'.length)
  await openIt()
})
after(async () => {
  await engine.close()
  await store.destroy()
  rmSync(folder, { recursive: true })
})

/** What another program sees of what others do. */
function lookInside(): readonly string[] {
  const database = new DatabaseSync(file)
  try {
    const free = database.prepare('PRAGMA freelist_count').get()?.freelist_count
    const isUnfolded = database.prepare('PRAGMA wal_checkpoint(RESTART)').get()?.busy === 1
    const later = database.prepare(`SELECT 1 FROM pragma_table_info('job_queue') WHERE name = 'later'`).get()
    return [...(free === 0 ? ['compact'] : []), ...(isUnfolded ? ['unfolded'] : []), ...(later ? ['later'] : [])]
  } catch {
    // The lock is held.
    return []
  } finally {
    database.close()
  }
}

/** Free pages, which VACUUM takes away. */
function leaveSpace(): void {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  database.exec('CREATE TABLE filling AS SELECT randomblob(100000) AS bytes; DROP TABLE filling')
  database.close()
}

test('every fault of a file has something that is seen of it', () => {
  assert.deepEqual(store.nemeses.map(({ name }) => name).sort(), Object.keys(SEEN).sort())
})

for (const [name, wanted] of Object.entries(SEEN))
  test(`${name}: it is seen while it lasts, and afterwards the file is as before`, async (t) => {
    const nemesis = store.nemeses.find((one) => one.name === name)
    assert.ok(nemesis)
    const excuse = nemesis.excuse?.(store) ?? null
    if (excuse !== null) return t.skip(excuse)
    leaveSpace()
    const earlier = await storeOne()
    const seen = new Set<string>()
    const stored: string[] = []
    const inside = wanted.some((one) => ['unfolded', 'compact', 'later'].includes(one))
    const look = async (): Promise<void> => {
      const startedMs = performance.now()
      await storeOne().then(
        (id) => void stored.push(id),
        (error: unknown) => void seen.add(String(Reflect.get(Object(error), 'code'))),
      )
      if (performance.now() - startedMs > SLOW_MS) seen.add('slow')
      if (inside) for (const one of lookInside()) seen.add(one)
      await systemClock.sleep(10)
    }
    let isOver = false
    const struck = nemesis
      .strike(
        sceneWith(() => seen.add('restarted')),
        () => SHARE,
      )
      .finally(() => {
        isOver = true
      })
    while (!isOver) await look()
    await struck
    const kept = await lookupOf(engine).find([earlier, ...stored])
    if (kept[0] === null) seen.add('gone')
    else if (kept.includes(null)) seen.add('undone')
    const left = [...seen].filter((one) => wanted.includes(one) || one === 'gone' || one === 'undone')
    assert.deepEqual(left.sort(), wanted)
    await storeOne()
    assert.deepEqual(
      lookInside().filter((one) => one === 'later'),
      [],
    )
  })

test('log-removed: the log that a killed process leaves stays there', async () => {
  const nemesis = store.nemeses.find((one) => one.name === 'log-removed')
  assert.ok(nemesis)
  const log = `${file}-wal`
  await engine.close()
  const seen: (readonly [isOrderly: boolean, isThere: boolean])[] = []
  const scene = sceneWith(() => {})
  const whileStopped: Crew['whileStopped'] = async (_signal, { act }) => {
    const isOrderly = seen.length === 1
    writeFileSync(log, '')
    await act(isOrderly)
    seen.push([isOrderly, existsSync(log)])
  }
  await nemesis.strike({ ...scene, crew: { ...scene.crew, whileStopped } }, Math.random)
  assert.deepEqual(seen, [
    [false, true],
    [true, false],
  ])
  await openIt()
})

/** One that uses the file in this process. */
function sceneWith(onRestart: () => void): Scene {
  const whileStopped: Crew['whileStopped'] = async (_signal, { before: first, act }) => {
    await first?.()
    await engine.close()
    await act(true)
    await openIt()
    onRestart()
  }
  return {
    store,
    crew: { processes: [], replace: assert.fail, launch: assert.fail, whileStopped },
    folder,
    during: (_fault, strike) => strike(),
  }
}
