/** Faults of the processes' own sessions: ended, cancelled, refused, or under limits that an administrator has set. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { fieldOf } from '../../../src/errors.ts'
import { OTHER_ROLE, PROOF_ROLE } from '../engines/postgres-servers.ts'
import type { Nemesis } from '../scene.ts'
import { bySession, type Struck } from './postgres-session.ts'
import { between, pick } from './random.ts'

const NEW_MS = [300, 2_000] as const
const CANCEL_MS = [100, 1_500] as const
const FULL_MS = [300, 2_000] as const
const LIMITED_MS = [500, 2_500] as const
const READ_ONLY_MS = [100, 1_500] as const
/** More than the server lets in. */
const VISITORS = 100

/** What an administrator may set for a role. A connection keeps what it found when it began. */
const TIMEOUTS = [
  'lock_timeout',
  'statement_timeout',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
  'transaction_timeout',
] as const

export function sessionNemeses(struck: Struck): readonly Nemesis[] {
  return [
    bySession(struck, 'terminate-one', 'ends one session of the processes, a few times', async (client, random) => {
      for (let left = 1 + random() * 5; left > 0; left -= 1) {
        const pids = await sessions(client)
        if (pids.length > 0) await client.query('SELECT pg_terminate_backend($1)', [pick(random, pids)])
        await sleep(between(random, 0, 100))
      }
    }),
    bySession(struck, 'terminate-all', 'ends all sessions of the processes at once', async (client) => {
      await terminateAll(client)
    }),
    bySession(
      struck,
      'terminate-new',
      'ends sessions of the processes as soon as they are opened, for a moment',
      async (client, random) => {
        await terminateAll(client)
        for (const untilMs = performance.now() + between(random, ...NEW_MS); performance.now() < untilMs; ) {
          await terminateAll(client, `backend_start > clock_timestamp() - interval '100 ms'`)
        }
      },
    ),
    bySession(struck, 'cancel-statements', 'cancels statements that run, for a moment', async (client, random) => {
      for (const untilMs = performance.now() + between(random, ...CANCEL_MS); performance.now() < untilMs; ) {
        const pids = await sessions(client, `state <> 'idle'`)
        if (pids.length > 0) await client.query('SELECT pg_cancel_backend($1)', [pick(random, pids)])
        await sleep(5)
      }
    }),
    bySession(struck, 'connection-limit', 'takes every connection that the server has left', (client, random) =>
      takeAllConnections(struck, client, random),
    ),
    roleTimeouts(struck),
    readOnly(struck),
  ]
}

async function sessions(client: pg.Client, and = 'true'): Promise<readonly number[]> {
  const { rows } = await client.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE usename = '${PROOF_ROLE}' AND ${and} ORDER BY backend_start, pid`,
  )
  return rows.map(({ pid }) => pid)
}

async function terminateAll(client: pg.Client, and = 'true'): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${PROOF_ROLE}' AND ${and}`,
  )
}

/** Some of the processes lose theirs meanwhile, and cannot have new ones. */
async function takeAllConnections({ servers }: Struck, client: pg.Client, random: () => number): Promise<void> {
  const taken: pg.Client[] = []
  const take = async (): Promise<boolean> => {
    const visitor = new pg.Client({ connectionString: servers.primary.url.replace('//postgres@', `//${OTHER_ROLE}@`) })
    visitor.on('error', () => {})
    try {
      await visitor.connect()
      taken.push(visitor)
      return true
    } catch (error) {
      if (fieldOf(error, 'code') !== '53300') throw error
      return false
    }
  }
  try {
    while (taken.length < VISITORS && (await take()));
    const pids = await sessions(client)
    for (const pid of pids.filter(() => random() < 0.5)) await client.query('SELECT pg_terminate_backend($1)', [pid])
    while (taken.length < VISITORS && (await take()));
    await sleep(between(random, ...FULL_MS))
  } finally {
    await Promise.all(taken.map((visitor) => visitor.end().catch(() => {})))
  }
}

/** New sessions have the time-out; one of the engine's own settings may take its place. A lock makes sure that something waits. */
function roleTimeouts({ servers, schema }: Struck): Nemesis {
  const name = 'role-timeouts'
  return {
    name,
    does: 'sets a short time-out for the role of the processes',
    strike: (scene, random) => {
      const timeout = pick(random, TIMEOUTS)
      const ms = between(random, 20, 400)
      const fault = { nemesis: name, target: null, detail: `${timeout} of ${ms} ms` }
      return scene.during(fault, async () => {
        await servers.administer(`ALTER ROLE ${PROOF_ROLE} SET ${timeout} = ${ms}`)
        await servers.session(async (client) => {
          await terminateAll(client)
          const untilMs = performance.now() + between(random, ...LIMITED_MS)
          while (performance.now() < untilMs) {
            await client.query(`BEGIN; LOCK TABLE ${schema}.jobs IN SHARE MODE`)
            await sleep(Math.max(100, ms * 1.5))
            await client.query('ROLLBACK')
            await sleep(ms)
          }
        })
        await servers.administer(`ALTER ROLE ${PROOF_ROLE} RESET ALL`)
        await servers.session((client) => terminateAll(client))
      })
    },
  }
}

function readOnly({ servers }: Struck): Nemesis {
  const name = 'read-only'
  return {
    name,
    does: 'makes the server read-only for a moment',
    strike: (scene, random) =>
      scene.during({ nemesis: name, target: null }, async () => {
        await servers.administer('ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
        await sleep(between(random, ...READ_ONLY_MS))
        await servers.administer('ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()')
      }),
  }
}
