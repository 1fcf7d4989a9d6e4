/** What other programs do to the file of a store while it is in use. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SCHEMA_VERSION } from '../../../src/engines/sqlite/migrations.ts'
import type { Nemesis } from '../scene.ts'
import { between } from './random.ts'

const PROGRAM = fileURLToPath(new URL('./files-program.ts', import.meta.url))
/** A writer gives up after 30 s. That takes so long that few of the locks are held beyond it. */
const BEYOND_BUSY_MS = 31_500
const BEYOND_BUSY_SHARE = 0.02
/** Of ten seconds each. */
const TRIES_MAX = 5

interface Doing {
  readonly sql: readonly string[]
  readonly forMs: number
  /** It dies in the middle of its transaction instead of ending it. */
  readonly dies?: boolean
}

/** Whether it could do what it should: the lock may never have been free for it. */
export async function runProgram(file: string, { sql, forMs, dies = false }: Doing): Promise<boolean> {
  const child = spawn(process.execPath, [PROGRAM, file, String(forMs), ...sql], { stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.once('data', () => {
    if (dies) setTimeout(() => child.kill('SIGKILL'), forMs / 2)
  })
  const [code] = await once(child, 'exit')
  return code === 0
}

/** For what must be done before a fault can be called healed. */
export async function mustRun(file: string, sql: readonly string[]): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) if (await runProgram(file, { sql, forMs: 0 })) return
  throw new Error(`another program could not execute ${sql.join('; ')}`)
}

function byProgram(
  file: string,
  name: string,
  does: string,
  act: (random: () => number) => Doing & { readonly after?: readonly string[] },
): Nemesis {
  return {
    name,
    does,
    strike: ({ during }, random) => {
      const { after, ...doing } = act(random)
      const detail = `${doing.forMs} ms${doing.dies === true ? ', then killed' : ''}`
      return during({ nemesis: name, target: null, detail }, async () => {
        const isDone = await runProgram(file, doing)
        if (isDone && after !== undefined) await mustRun(file, after)
      })
    },
  }
}

/** A program that uses the file as SQLite allows it. */
export function programNemeses(file: string): readonly Nemesis[] {
  const dies = (random: () => number): boolean => random() < 0.3
  return [
    byProgram(
      file,
      'file-locked',
      'holds the write lock for up to three seconds, and now and then for longer than a writer waits',
      (random) => ({
        sql: ['BEGIN IMMEDIATE'],
        forMs: random() < BEYOND_BUSY_SHARE ? BEYOND_BUSY_MS : between(random, 200, 3_000),
        dies: dies(random),
      }),
    ),
    byProgram(
      file,
      'file-read',
      'reads in one transaction for up to five seconds, so that the log cannot be folded back',
      (random) => ({
        sql: ['BEGIN', 'SELECT count(*) FROM job_queue'],
        forMs: between(random, 1_000, 5_000),
        dies: dies(random),
      }),
    ),
    byProgram(file, 'file-vacuumed', 'rewrites the file with VACUUM, or folds the log back and cuts it', (random) => ({
      sql: [random() < 0.5 ? 'VACUUM' : 'PRAGMA wal_checkpoint(TRUNCATE)'],
      forMs: 0,
    })),
    byProgram(
      file,
      'schema-added',
      'migrates the file to a later version that present packages can work with, for up to three seconds',
      (random) => ({
        sql: [
          'BEGIN IMMEDIATE',
          `ALTER TABLE job_queue ADD COLUMN later TEXT DEFAULT 'x'`,
          'CREATE INDEX idx_later ON job_queue(later)',
          `INSERT INTO millrace_schema (version, name, applied_at) VALUES (${-SCHEMA_VERSION - 1}, 'later', '2026-01-01T00:00:00.000Z')`,
          'COMMIT',
        ],
        forMs: between(random, 200, 3_000),
        after: [
          'BEGIN IMMEDIATE',
          'DROP INDEX IF EXISTS idx_later',
          `DELETE FROM millrace_schema WHERE version = ${-SCHEMA_VERSION - 1}`,
          'COMMIT',
          'ALTER TABLE job_queue DROP COLUMN later',
        ],
      }),
    ),
    byProgram(
      file,
      'schema-newer',
      'migrates the file to a version that present packages refuse, and back after up to three seconds',
      (random) => ({
        sql: [
          `INSERT INTO millrace_schema (version, name, applied_at) VALUES (${SCHEMA_VERSION + 1}, 'newer', '2026-01-01T00:00:00.000Z')`,
        ],
        forMs: between(random, 200, 3_000),
        after: [`DELETE FROM millrace_schema WHERE version = ${SCHEMA_VERSION + 1}`],
      }),
    ),
  ]
}
