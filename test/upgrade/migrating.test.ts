/** Migrations by several processes at once, again, and by one that is killed in the middle. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { eventually } from '../../conformance/process/child.ts'
import { postgresServer } from '../servers/postgres.ts'
import { RECORDED } from './recorded.ts'
import type { Store } from './stores.ts'

const MIGRATOR = fileURLToPath(new URL('./migrator.ts', import.meta.url))

const start = (url: string, ...version: readonly string[]): ChildProcess =>
  spawn(process.execPath, [MIGRATOR, url, ...version], { stdio: 'inherit' })

async function ended(process: ChildProcess): Promise<number | string> {
  const [code, signal] = await once(process, 'exit')
  return code ?? signal
}

/** Its schema and its jobs, as text, which is the same for two stores with the same. */
async function contentOf(store: Store): Promise<string> {
  const isSqlite = store.url.startsWith('sqlite:')
  const schema = isSqlite
    ? `SELECT name, sql FROM sqlite_master ORDER BY name`
    : `SELECT table_name, column_name, data_type, column_default FROM information_schema.columns
       WHERE table_schema = current_schema ORDER BY 1, 2`
  const indexes = isSqlite ? 'SELECT 1' : 'SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema ORDER BY 1'
  const all = [
    await store.rows(schema),
    await store.rows(indexes),
    await store.rows('SELECT version, name FROM millrace_schema ORDER BY 1'),
    await store.rows(`SELECT * FROM ${isSqlite ? 'job_queue' : 'jobs'} ORDER BY id`),
  ]
  return JSON.stringify(all, null, 1).replaceAll(new URL(store.url).searchParams.get('schema') ?? '\n\n', 'schema')
}

/** Kills the process when it has come to this version, and not before. */
async function killAt(store: Store, version: number): Promise<void> {
  if (store.url.startsWith('sqlite:')) {
    assert.equal(await ended(start(store.url, String(version))), 'SIGKILL')
    return
  }
  const holder = new pg.Client(await postgresServer().then(({ url }) => url))
  await holder.connect()
  try {
    await holder.query('SELECT pg_advisory_lock($1)', [version])
    const child = start(store.url, String(version))
    const waiting = `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ${version}`
    await eventually(async () => (await holder.query(waiting)).rows.length > 0, 'the migration waits')
    child.kill('SIGKILL')
    assert.equal(await ended(child), 'SIGKILL')
    const [{ pid }] = (await holder.query(waiting)).rows
    await holder.query('SELECT pg_advisory_unlock($1)', [version])
    // The server sees that its client is gone when it has something to say.
    const gone = `SELECT 1 FROM pg_stat_activity WHERE pid = ${pid}`
    await eventually(async () => (await holder.query(gone)).rows.length === 0, 'the server has undone it')
  } finally {
    await holder.end()
  }
}

for (const name of ['sqlite-1-first', 'postgres-1']) {
  describe(`migrating ${name}`, { concurrency: 2 }, () => {
    const make = async (): Promise<Store> => {
      const store = await RECORDED.find((one) => one.name === name)?.makeStore()
      assert.ok(store)
      return store
    }

    test('three processes at once, and one again, leave what one leaves', async () => {
      const [together, alone] = [await make(), await make()]
      try {
        const children = [1, 2, 3].map(() => start(together.url))
        assert.deepEqual(await Promise.all(children.map(ended)), [0, 0, 0])
        await alone.migrate()
        const content = await contentOf(alone)
        assert.equal(await contentOf(together), content)
        assert.equal(await ended(start(alone.url)), 0)
        assert.equal(await contentOf(alone), content)
      } finally {
        await Promise.all([together.remove(), alone.remove()])
      }
    })

    test('a process that is killed in the middle leaves the old schema, and repeating it finishes', async () => {
      const [store, alone] = [await make(), await make()]
      try {
        const before = await contentOf(store)
        for (const version of [3, 6, store.present + 1]) {
          await killAt(store, version)
          assert.equal(await contentOf(store), before, `killed at ${version}`)
        }
        await Promise.all([store.migrate(), alone.migrate()])
        assert.equal(await contentOf(store), await contentOf(alone))
      } finally {
        await Promise.all([store.remove(), alone.remove()])
      }
    })
  })
}
