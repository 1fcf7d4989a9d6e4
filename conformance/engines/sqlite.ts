import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Engine } from '../../src/engine/engine.ts'
import { connect } from '../../src/engines/sqlite/module.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import type { Harness, OwnTransaction } from '../harness.ts'

/**
 * Every view has a connection of its own to one file in a folder of its own. Time is virtual and the disk is not, so
 * these views do not wait for it; the processes of the third level do, as any user's would.
 */
export async function sqliteHarness(clock: TestClock = new TestClock()): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-conformance-'))
  const file = join(folder, 'jobs.db')
  const url = `sqlite:${file}`
  const views: Engine[] = []
  const handles: DatabaseSync[] = []
  const view = async (): Promise<Engine> => {
    const engine = await connect(`${url}?synchronous=normal`, { clock, migrate: true })
    views.push(engine)
    return engine
  }
  const engine = await view()
  return {
    engine,
    clock,
    url,
    other: view,
    advance: (ms) => clock.advance(ms),
    transaction: async () => {
      const handle = new DatabaseSync(file)
      handles.push(handle)
      return beginOn(handle)
    },
    destroy: async () => {
      for (const opened of views) await opened.close()
      for (const handle of handles) handle.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function beginOn(handle: DatabaseSync): OwnTransaction {
  handle.exec('create table if not exists note (text text not null)')
  handle.exec('begin immediate')
  return {
    within: handle,
    note: async (text) => void handle.prepare('insert into note (text) values (?)').run(text),
    notes: async () =>
      handle
        .prepare('select text from note')
        .all()
        .map((row) => String(row.text)),
    commit: async () => handle.exec('commit'),
    rollback: async () => handle.exec('rollback'),
  }
}
