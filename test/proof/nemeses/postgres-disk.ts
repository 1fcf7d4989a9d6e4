/** A disk without space: the tables of jobs are moved to a small one, it is filled, and they are moved back. */
import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fieldOf } from '../../../src/errors.ts'
import type { Nemesis } from '../scene.ts'
import type { Struck } from './postgres-session.ts'
import { between } from './random.ts'

const FULL_MS = [300, 2_000] as const
/** Enough for the tables of a round; what is left is filled up. */
const DISK_MB = 128
/** The user of the server where root starts it. */
const NOBODY = 65_534
const TABLES = ['jobs', 'job_events'] as const

/** Only a disk of its own can be full without harming other programs, and only root can mount one. */
export function fullDisk({ servers, schema }: Struck): Nemesis {
  const name = 'disk-full'
  const space = `${schema}_full`
  /** With their indexes. The server's log stays where it is, so that the server itself goes on. */
  const moveTo = (place: string): Promise<void> =>
    servers.session(async (client) => {
      const { rows } = await client.query<{ index: string }>(
        `SELECT indexname AS index FROM pg_indexes WHERE schemaname = $1 AND tablename = ANY ($2)`,
        [schema, TABLES],
      )
      for (const table of TABLES) await client.query(`ALTER TABLE ${schema}.${table} SET TABLESPACE ${place}`)
      for (const { index } of rows) await client.query(`ALTER INDEX ${schema}.${index} SET TABLESPACE ${place}`)
    })
  return {
    name,
    does: 'fills the disk of the tables for a moment',
    excuse: () =>
      process.getuid?.() === 0 && process.platform === 'linux' ? null : 'only root can mount a small disk',
    strike: async (scene, random) => {
      const disk = mount()
      await servers.administer(`CREATE TABLESPACE ${space} LOCATION '${join(disk, 'space')}'`)
      await moveTo(space)
      await scene.during({ nemesis: name, target: null }, async () => {
        const filling = join(disk, 'filling')
        fill(disk, filling)
        await sleep(between(random, ...FULL_MS))
        rmSync(filling)
      })
      await moveTo('pg_default')
      // After a crash the server would look for the disk again, had it not written down since that nothing is there.
      await servers.administer(`DROP TABLESPACE ${space}`, 'CHECKPOINT')
      unmount(disk)
    },
  }
}

/** Tables grow meanwhile: then there is less room than was counted, and the disk is full all the same. */
function fill(disk: string, filling: string): void {
  const { bavail, bsize } = statfsSync(disk)
  try {
    writeFileSync(filling, Buffer.alloc(bavail * bsize))
  } catch (error) {
    if (fieldOf(error, 'code') !== 'ENOSPC') throw error
  }
}

function mount(): string {
  const disk = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=755`, 'tmpfs', disk])
  const space = join(disk, 'space')
  mkdirSync(space)
  chownSync(disk, NOBODY, NOBODY)
  chownSync(space, NOBODY, NOBODY)
  return disk
}

function unmount(disk: string): void {
  execFileSync('umount', ['-l', disk])
  rmdirSync(disk)
}
