/** The backups that docs/operating-sqlite.md shows, restored as it says. */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../cli/run.ts'
import { busyStore, checkRestored, workOn } from './scene.ts'

const WAYS: Readonly<Record<string, (file: string, to: string) => Promise<void>>> = {
  async 'VACUUM INTO'(file, to) {
    const database = new DatabaseSync(file)
    database.exec(`VACUUM INTO '${to}'`)
    database.close()
  },
  async 'the backup API'(file, to) {
    const source = new DatabaseSync(file, { readOnly: true })
    await backup(source, to)
    source.close()
  },
}

for (const [way, copy] of Object.entries(WAYS)) {
  test(`a backup by ${way} while workers run loses nothing, and its leased jobs are recovered`, async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'jobs.db')
    const scene = await busyStore(`sqlite:${file}`)
    await copy(file, join(folder, 'backup.db'))
      .finally(() => workOn(scene))
      .finally(() => scene.end())
    for (const name of ['jobs.db', 'jobs.db-wal', 'jobs.db-shm']) rmSync(join(folder, name), { force: true })
    cpSync(join(folder, 'backup.db'), file)
    await checkRestored(`sqlite:${file}`, scene)
  })
}
