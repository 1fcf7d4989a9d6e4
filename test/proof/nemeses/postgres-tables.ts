/** Faults of the tables: rewritten, indexed again, misjudged by the planner, changed by their owner, without space. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Nemesis } from '../scene.ts'
import { fullDisk } from './postgres-disk.ts'
import { bySession, type Struck } from './postgres-session.ts'
import { between, pick } from './random.ts'

const TABLES = ['jobs', 'job_events'] as const
const MISJUDGED_MS = [500, 2_500] as const
const COLUMN_MS = [100, 1_000] as const
/** As if it were empty, or as if it were huge. */
const WRONG_SIZES = [
  [0, 0],
  [1, 1],
  [10_000_000, 1_000_000_000],
] as const

export function tableNemeses(struck: Struck): readonly Nemesis[] {
  const { servers, schema } = struck
  return [
    bySession(struck, 'vacuum-full', 'rewrites the tables, so that each row has another place', async (client) => {
      for (const table of TABLES) await client.query(`VACUUM FULL ${schema}.${table}`)
    }),
    bySession(struck, 'reindex', 'builds all indexes of jobs again', async (client, random) => {
      await client.query(`REINDEX TABLE ${random() < 0.5 ? 'CONCURRENTLY ' : ''}${schema}.jobs`)
    }),
    {
      name: 'statistics',
      does: 'makes the planner misjudge the tables, so that plans change',
      strike: (scene, random) =>
        scene.during({ nemesis: 'statistics', target: null }, async () => {
          const [pages, rows] = pick(random, WRONG_SIZES)
          const oids = TABLES.map((table) => `'${schema}.${table}'::regclass`).join(', ')
          await servers.administer(
            `DELETE FROM pg_statistic WHERE starelid IN (${oids})`,
            `UPDATE pg_class SET relpages = ${pages}, reltuples = ${rows} WHERE oid IN (${oids})`,
          )
          await sleep(between(random, ...MISJUDGED_MS))
          await servers.administer(...TABLES.map((table) => `ANALYZE ${schema}.${table}`))
        }),
    },
    {
      name: 'column',
      does: 'adds a column to the table of jobs and drops it again, as its owner may',
      strike: (scene, random) =>
        scene.during({ nemesis: 'column', target: null }, async () => {
          await servers.administer(`ALTER TABLE ${schema}.jobs ADD COLUMN note text NOT NULL DEFAULT 'none'`)
          await sleep(between(random, ...COLUMN_MS))
          await servers.administer(`ALTER TABLE ${schema}.jobs DROP COLUMN note`)
        }),
    },
    fullDisk(struck),
  ]
}
