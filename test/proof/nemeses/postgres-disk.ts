/** A disk without space: the tables of jobs are moved to a small one, it is filled, and they are moved back. */
import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Nemesis } from '../scene.ts'
import { between, type Struck } from './postgres-session.ts'

const FULL_MS = [300, 2_000] as const
/** Enough for the tables of a round; what is left is filled up. */
const DISK_MB = 256
/** Whom the server runs as where root starts it. */
const NOBODY = 65_534
const TABLES = ['jobs', 'job_events'] as const

/** Only a disk of its own can be full without harming anybody else, and only root can mount one. */
export function fullDisk({ servers, schema }: Struck): Nemesis {
  const name = 'disk-full'
  const space = `${schema}_full`
  /** An administrator's log is elsewhere, so the server itself goes on. */
  const move = (to: string): readonly string[] =>
    TABLES.map((table) => `ALTER TABLE ${schema}.${table} SET TABLESPACE ${to}`)
  const indexes = `SELECT format('ALTER INDEX %I.%I SET TABLESPACE ', schemaname, indexname) AS text FROM pg_indexes
    WHERE schemaname = '${schema}' AND tablename IN ('${TABLES.join(`', '`)}')`
  return {
    name,
    does: 'fills the disk of the tables for a moment',
    excuse: () =>
      process.getuid?.() === 0 && process.platform === 'linux' ? null : 'only root can mount a small disk',
    strike: (scene, random) =>
      servers.alone(async () => {
        const disk = mount()
        try {
          await servers.must(`CREATE TABLESPACE ${space} LOCATION '${join(disk, 'space')}'`, ...move(space))
          await servers.session(async (client) => {
            for (const { text } of (await client.query<{ text: string }>(indexes)).rows)
              await client.query(text + space)
          })
          await scene.during({ nemesis: name, target: null }, async () => {
            const filling = join(disk, 'filling')
            try {
              const { bavail, bsize } = statfsSync(disk)
              writeFileSync(filling, Buffer.alloc(bavail * bsize))
              await sleep(between(random, FULL_MS))
            } finally {
              rmSync(filling, { force: true })
            }
          })
          await servers.must(...move('pg_default'))
          await servers.session(async (client) => {
            for (const { text } of (await client.query<{ text: string }>(indexes)).rows)
              await client.query(`${text}pg_default`)
          })
          // After a crash the server would look for the disk again, had it not written down since that nothing is there.
          await servers.must(`DROP TABLESPACE ${space}`, 'CHECKPOINT')
        } finally {
          unmount(disk)
        }
      }),
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
