/** Faults of other transactions: they hold locks on the tables of jobs and on single jobs, meet in deadlocks, and last. */
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { fieldOf } from '../../../src/errors.ts'
import type { Nemesis } from '../scene.ts'
import { bySession, type Struck } from './postgres-session.ts'
import { between, pick } from './random.ts'

const MODES = ['ACCESS EXCLUSIVE', 'EXCLUSIVE', 'SHARE ROW EXCLUSIVE', 'SHARE'] as const
/** Some outlive a lease of one to two seconds. */
const TABLE_MS = [50, 1_500] as const
const ROWS_MS = [50, 2_500] as const
const ROWS = 60
const DEADLOCKS = 6
const DEADLOCK_ROWS = 12
const LONG_MS = [1_000, 3_500] as const

export function lockNemeses(struck: Struck): readonly Nemesis[] {
  const { servers, schema } = struck
  return [
    bySession(struck, 'table-lock', 'locks the table of jobs for a moment', async (client, random) => {
      await client.query(`BEGIN; LOCK TABLE ${schema}.jobs IN ${pick(random, MODES)} MODE`)
      await sleep(between(random, ...TABLE_MS))
      await client.query('ROLLBACK')
    }),
    bySession(struck, 'row-locks', 'locks jobs that wait or run for a moment', async (client, random) => {
      const ids = await liveJobs(struck, client, random, ROWS)
      await client.query('BEGIN')
      await client.query(`SELECT id FROM ${schema}.jobs WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED`, [ids])
      await sleep(between(random, ...ROWS_MS))
      await client.query('ROLLBACK')
    }),
    bySession(
      struck,
      'deadlock',
      'locks jobs in any order, as no statement of Millrace does',
      async (client, random) => {
        for (let count = 0; count < DEADLOCKS; count += 1) await lockInAnyOrder(struck, client, random)
      },
    ),
    bySession(
      struck,
      'long-transaction',
      'keeps a snapshot open, so that vacuum cannot remove anything',
      async (client, random) => {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
        await client.query(`SELECT count(*) FROM ${schema}.jobs`)
        await servers.session(async (other) => void (await other.query(`VACUUM ${schema}.jobs`)))
        await sleep(between(random, ...LONG_MS))
        await client.query('COMMIT')
      },
    ),
  ]
}

async function liveJobs(
  { schema }: Struck,
  client: pg.Client,
  random: () => number,
  count: number,
): Promise<readonly string[]> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM ${schema}.jobs WHERE status IN ('queued', 'processing') ORDER BY status = 'queued', md5(id || $1) LIMIT $2`,
    [String(random()), count],
  )
  return rows.map(({ id }) => id)
}

/** One of the two is given up by the server: this transaction, or one of Millrace's. */
async function lockInAnyOrder(struck: Struck, client: pg.Client, random: () => number): Promise<void> {
  const ids = await liveJobs(struck, client, random, DEADLOCK_ROWS)
  try {
    await client.query('BEGIN')
    for (const id of ids) {
      await client.query(`UPDATE ${struck.schema}.jobs SET updated_at = updated_at WHERE id = $1`, [id])
      await sleep(between(random, 0, 10))
    }
    await client.query('COMMIT')
  } catch (error) {
    if (fieldOf(error, 'code') !== '40P01') throw error
    await client.query('ROLLBACK')
  }
}
