/** What the doctor is told about a Postgres server and its tables. It writes nothing and locks nothing. */
import { type Check, failure, runChecks } from '../../doctor/findings.ts'
import {
  type ConnectionFacts,
  type Holder,
  judgeAutovacuum,
  judgeConnections,
  judgeDurability,
  judgeHolders,
  judgeNotifications,
  judgeRights,
  judgeTable,
  judgeWakeups,
  type TableFacts,
} from '../../doctor/postgres.ts'
import { judgeSchema } from '../../doctor/schema.ts'
import { judgeServerClock, judgeServerVersion } from '../../doctor/server.ts'
import { judgeOutboxes, type WaitingOutbox } from '../../doctor/upkeep.ts'
import type { DiagnoseOptions, Finding } from '../../engine/engine.ts'
import { systemClock } from '../../time/clock.ts'
import type { PostgresCore } from './core.ts'
import type { Database, Queries } from './database.ts'
import { ms, NOW } from './fragments.ts'
import {
  checkConsistency,
  checkOverdue,
  checkSchedules,
  checkStuck,
  checkUnclaimable,
  checkWorkers,
} from './job-facts.ts'
import { ARRAY_NULLS_ADVICE, ARRAY_NULLS_OFF, ENCODING_ADVICE, workerRights, wrongEncoding } from './migrate.ts'
import type { Names } from './names.ts'
import type { PostgresOptions } from './options.ts'
import { LIST_OUTBOXES } from './outbox.ts'
import { schemaFaults } from './schema-facts.ts'

export interface Examination extends DiagnoseOptions {
  readonly recoveryMaxMs: number
  readonly options: Required<PostgresOptions>
}

type Look = (database: Database) => Promise<Finding | readonly Finding[]>

export async function diagnose(core: PostgresCore, examination: Examination): Promise<readonly Finding[]> {
  const { recoveryMaxMs, options } = examination
  const looks: readonly (readonly [subject: string, look: Look])[] = [
    ['server', checkServer],
    ['connections', (database) => checkConnections(database, options.pool + (options.listen ? 1 : 0))],
    ['wake-ups', async () => judgeWakeups({ ...options, isHeard: options.listen && (await isHeard(core)) })],
    ['role', checkRole],
    ['schema', async (database) => judgeSchema(...(await schemaFaults(database)))],
    ['horizon', checkHorizon],
    ['vacuum', async (database) => (await database.rows<TableFacts>(READ_TABLES)).flatMap(judgeTable)],
    ['stuck jobs', (database) => checkStuck(database, recoveryMaxMs)],
    ['unclaimable jobs', checkUnclaimable],
    ['overdue jobs', checkOverdue],
    ['workers', checkWorkers],
    ['schedules', checkSchedules],
    ['outbox', async (database) => judgeOutboxes(await database.rows<WaitingOutbox>(LIST_OUTBOXES))],
    ...(examination.deep === true ? [['consistency', checkConsistency] as const] : []),
  ]
  return runChecks(looks.map(([subject, look]): Check => [subject, () => core.call(`checking the ${subject}`, look)]))
}

interface Settings {
  readonly version: string
  readonly number: number
  readonly fsync: string
  readonly pages: string
  readonly commit: string
  readonly autovacuum: string
  readonly encoding: string
  readonly array_nulls: string
  readonly clock_ms: number
  readonly notifications: number
}

/** Settings that every role may read. The clock is real, whatever clock the engine was given. */
const READ_SETTINGS = (): string => `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
  current_setting('synchronous_commit') AS commit, current_setting('autovacuum') AS autovacuum,
  current_setting('server_encoding') AS encoding, current_setting('array_nulls') AS array_nulls,
  ${ms('clock_timestamp()')} AS clock_ms, pg_notification_queue_usage() AS notifications, ${NOW} AS now`

/** The oldest major version that still gets fixes in 2026. */
const MAINTAINED = 140_000

async function checkServer(queries: Queries): Promise<readonly Finding[]> {
  const beforeMs = systemClock.nowMs()
  const [settings] = await queries.rows<Settings>(READ_SETTINGS)
  if (settings === undefined) return []
  const afterMs = systemClock.nowMs()
  const { version, number, encoding, array_nulls: arrayNulls } = settings
  const isMaintained = number >= MAINTAINED
  return [
    judgeServerVersion({ name: `Postgres ${version}`, isTooOld: false, isMaintained, oldest: '13' }),
    judgeDurability(settings),
    judgeServerClock(settings.clock_ms, beforeMs, afterMs),
    judgeNotifications(settings.notifications),
    ...(encoding === 'UTF8'
      ? []
      : [failure('encoding', wrongEncoding(encoding), `Move the jobs: ${ENCODING_ADVICE}.`)]),
    ...(arrayNulls === 'on' ? [] : [failure('array_nulls', ARRAY_NULLS_OFF, `As its owner ${ARRAY_NULLS_ADVICE}.`)]),
    ...judgeAutovacuum(settings.autovacuum),
  ]
}

const READ_CONNECTIONS = (): string => `
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS allowed,
  (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database) AS used,
  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS own_limit,
  (SELECT count(*)::int FROM pg_stat_activity WHERE usename = current_user) AS own, ${NOW} AS now`

async function checkConnections(queries: Queries, pool: number): Promise<readonly Finding[]> {
  const [found] = await queries.rows<ConnectionFacts>(READ_CONNECTIONS)
  return found === undefined ? [] : [judgeConnections(found, pool)]
}

/** How long the first notification of an engine that was just opened may take. */
const HEARD_MS = 3_000

async function isHeard({ channel }: Pick<PostgresCore, 'channel'>): Promise<boolean> {
  const untilMs = systemClock.monotonicMs() + HEARD_MS
  channel.start()
  while (!channel.isListening && systemClock.monotonicMs() < untilMs) await systemClock.sleep(20)
  return channel.isListening
}

const text = (name: string): string => name.replaceAll("'", "''")

/** $2: tables, $3: the rights that each needs. */
const READ_RIGHTS = ({ schema }: Names): string => `
SELECT current_user AS role, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super,
  has_schema_privilege('${text(schema)}', 'USAGE') AS usage,
  coalesce((SELECT json_agg(json_build_object('name', name, 'lacks', rights)) FROM
    unnest($2::text[], $3::text[]) AS given (name, rights)
    CROSS JOIN LATERAL unnest(string_to_array(rights, ', ')) AS needed (one)
    WHERE to_regclass(name) IS NOT NULL AND NOT CASE WHEN rights = 'USAGE'
      THEN has_sequence_privilege(name, 'USAGE') ELSE has_table_privilege(name, one) END), '[]') AS lacking, ${NOW} AS now`

interface Rights {
  readonly role: string
  readonly super: boolean
  readonly usage: boolean
  readonly lacking: readonly { readonly name: string; readonly lacks: string }[]
}

async function checkRole(database: Database): Promise<readonly Finding[]> {
  const needed = workerRights(database.names)
  const [found] = await database.rows<Rights>(
    READ_RIGHTS,
    needed.flatMap(({ on }) => on),
    needed.flatMap(({ on, rights }) => on.map(() => rights)),
  )
  if (found === undefined) return []
  const lacking = [
    ...(found.usage ? [] : [`USAGE on schema ${database.names.schema}`]),
    ...new Set(found.lacking.map(({ name, lacks }) => `${lacks} on ${name}`)),
  ]
  return [judgeRights({ role: found.role, isSuperuser: found.super, lacking })]
}

/** Who keeps old row versions alive: sessions, prepared transactions, replication slots, standbys. Oldest first. */
export const FIND_HOLDERS = (): string => `
SELECT *, ${NOW} AS now FROM (
  SELECT 'session' AS kind, pid::text AS name, concat_ws(' ', usename, nullif(application_name, ''), state) AS detail,
    ${ms('clock_timestamp()')} - ${ms('xact_start')} AS age_ms FROM pg_stat_activity
  WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
  UNION ALL
  SELECT 'prepared', gid, owner::text, ${ms('clock_timestamp()')} - ${ms('prepared')}
  FROM pg_prepared_xacts WHERE database = current_database()
  UNION ALL
  SELECT 'slot', slot_name::text, concat_ws(' ', slot_type, CASE WHEN active THEN 'active' ELSE 'inactive' END),
    NULL FROM pg_replication_slots WHERE NOT active OR xmin IS NOT NULL AND age(xmin) > 1000000
  UNION ALL
  SELECT 'standby', coalesce(nullif(application_name, ''), pid::text), 'hot_standby_feedback', NULL
  FROM pg_stat_replication WHERE backend_xmin IS NOT NULL AND age(backend_xmin) > 1000000) AS holder
ORDER BY age_ms DESC NULLS LAST LIMIT 20`

/** Without this right a role sees of other roles' sessions nothing but that they are there. */
const SEES_ALL = (): string => `SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS all, ${NOW} AS now`

async function checkHorizon(queries: Queries): Promise<readonly Finding[]> {
  const holders = await queries.rows<Holder>(FIND_HOLDERS)
  const [sight] = await queries.rows<{ all: boolean }>(SEES_ALL)
  return judgeHolders(holders, sight?.all === true)
}

const READ_TABLES = ({ jobs, events }: Names): string => `
SELECT class.oid::regclass::text AS name, stats.n_live_tup::float8 AS live, stats.n_dead_tup::float8 AS dead,
  ${ms('greatest(stats.last_vacuum, stats.last_autovacuum)')} AS vacuumed_ms, ${ms('clock_timestamp()')} AS clock_ms,
  pg_total_relation_size(class.oid)::float8 AS bytes, age(class.relfrozenxid)::float8 AS frozen_age,
  coalesce('autovacuum_enabled=false' = ANY (class.reloptions) OR 'autovacuum_enabled=off' = ANY (class.reloptions), false)
    AS unvacuumed, ${NOW} AS now
FROM pg_class AS class LEFT JOIN pg_stat_all_tables AS stats ON stats.relid = class.oid
WHERE class.oid IN (to_regclass('${text(jobs)}'), to_regclass('${text(events)}')) ORDER BY class.relname DESC`
