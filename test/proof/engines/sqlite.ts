import { join } from 'node:path'
import { capabilitiesOf } from '../../../src/engine/open.ts'
import { mountDisk } from '../disk.ts'
import { diskNemeses } from '../nemeses/disks.ts'
import { fileNemeses } from '../nemeses/files.ts'
import { programNemeses, runProgram } from '../nemeses/files-programs.ts'
import { producersFor } from '../producers/index.ts'
import type { OpenStore } from '../scene.ts'

/** A new file for each round, on a disk of its own where one can be mounted. The round removes its folder. */
export const openSqlite: OpenStore = async ({ folder }) => {
  const disk = mountDisk(folder)
  const file = join(disk?.folder ?? folder, 'store.db')
  const url = `sqlite:${file}`
  const foldLog = async (): Promise<void> => {
    await runProgram(file, { sql: ['PRAGMA wal_checkpoint(TRUNCATE)'], forMs: 0 })
  }
  return {
    engine: 'sqlite',
    capabilities: await capabilitiesOf(url),
    url,
    directUrl: url,
    wire: null,
    nemeses: [...diskNemeses(disk, foldLog), ...programNemeses(file), ...fileNemeses(file)],
    producers: producersFor(url),
    destroy: async () => disk?.remove(),
  }
}
