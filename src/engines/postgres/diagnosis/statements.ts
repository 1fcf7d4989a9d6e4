/**
 * What the diagnosis asks. Nothing is written, nothing is locked, and but for the deep look nothing walks all finished
 * jobs: a look at a large table stays short.
 */

import { DUE, ms, NOW } from '../fragments.ts'
import type { Names } from '../names.ts'

const text = (name: string): string => name.replaceAll("'", "''")

/** Settings that every role may read. The clock is real, whatever clock the engine was given. */
export const LOOK_AT_SETTINGS = (): string => `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
  current_setting('synchronous_commit') AS commit, current_setting('autovacuum') AS autovacuum,
  current_setting('server_encoding') AS encoding, current_setting('array_nulls') AS array_nulls,
  ${ms('clock_timestamp()')} AS clock_ms, pg_notification_queue_usage() AS notifications, ${NOW} AS now`

export const LOOK_AT_CONNECTIONS = (): string => `
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS allowed,
  (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database) AS used,
  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS own_limit,
  (SELECT count(*)::int FROM pg_stat_activity WHERE usename = current_user) AS own, ${NOW} AS now`

/** $2: tables, $3: the rights that each needs. */
export const LOOK_AT_RIGHTS = ({ schema }: Names): string => `
SELECT current_user AS role, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super,
  has_schema_privilege('${text(schema)}', 'USAGE') AS usage,
  coalesce((SELECT json_agg(json_build_object('name', name, 'lacks', rights)) FROM
    unnest($2::text[], $3::text[]) AS given (name, rights)
    CROSS JOIN LATERAL unnest(string_to_array(rights, ', ')) AS needed (one)
    WHERE to_regclass(name) IS NOT NULL AND NOT CASE WHEN rights = 'USAGE'
      THEN has_sequence_privilege(name, 'USAGE') ELSE has_table_privilege(name, one) END), '[]') AS lacking, ${NOW} AS now`

export const READ_COLUMNS = ({ jobs }: Names): string => `
SELECT attname AS name, attnotnull AND NOT atthasdef AND attidentity = '' AS required, ${NOW} AS now FROM pg_attribute
WHERE attrelid = to_regclass('${text(jobs)}') AND attnum > 0 AND NOT attisdropped`

export const READ_INDEXES = (): string => `
SELECT class.relname AS name, index.indisvalid AND index.indisready AS valid, ${NOW} AS now
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace WHERE space.nspname = $2`

export const READ_TRIGGERS = (): string => `
SELECT tgname AS name, tgenabled <> 'D' AS valid, ${NOW} AS now
FROM pg_trigger JOIN pg_class AS class ON class.oid = tgrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace WHERE space.nspname = $2 AND NOT tgisinternal`

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
export const SEES_ALL = (): string =>
  `SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS all, ${NOW} AS now`

export const LOOK_AT_ROWS = ({ jobs, events }: Names): string => `
SELECT class.oid::regclass::text AS name, stats.n_live_tup::float8 AS live, stats.n_dead_tup::float8 AS dead,
  ${ms('greatest(stats.last_vacuum, stats.last_autovacuum)')} AS vacuumed_ms, ${ms('clock_timestamp()')} AS clock_ms,
  pg_total_relation_size(class.oid)::float8 AS bytes, age(class.relfrozenxid)::float8 AS frozen_age,
  coalesce('autovacuum_enabled=false' = ANY (class.reloptions) OR 'autovacuum_enabled=off' = ANY (class.reloptions), false)
    AS unvacuumed, ${NOW} AS now
FROM pg_class AS class LEFT JOIN pg_stat_all_tables AS stats ON stats.relid = class.oid
WHERE class.oid IN (to_regclass('${text(jobs)}'), to_regclass('${text(events)}')) ORDER BY class.relname DESC`

/** $2: how long recovery may take, $3: how long a row without a lease may be silent. */
export const COUNT_STUCK = ({ jobs }: Names): string => `
SELECT count(*) FILTER (WHERE type IS NOT NULL)::int AS jobs, count(*) FILTER (WHERE type IS NULL)::int AS untyped,
  ${ms(`min(ended_at) FILTER (WHERE type IS NOT NULL)`)} AS oldest_ms, ${ms(NOW)} AS now_ms
FROM (SELECT type, coalesce(lease_expires_at,
    coalesce(last_heartbeat_at, updated_at, created_at) + $3::float8 * interval '1 millisecond') AS ended_at
  FROM ${jobs} WHERE status = 'processing') AS running
WHERE ended_at <= ${NOW} - $2::float8 * interval '1 millisecond'`

/** $2: for how long, $3: since when a sign of a worker counts, among the newest $4 rows. */
export const COUNT_OVERDUE = ({ jobs }: Names): string => `
WITH overdue AS (
  SELECT type, count(*)::int AS jobs, min(${DUE}) AS oldest FROM ${jobs}
  WHERE status = 'queued' AND NOT blocked AND waiting_for = 0 AND type IS NOT NULL
    AND ${DUE} <= ${NOW} - $2::float8 * interval '1 millisecond' GROUP BY type),
newest AS MATERIALIZED (SELECT type, attempt_count, started_at, updated_at FROM ${jobs} ORDER BY id DESC LIMIT $3),
signs AS (
  SELECT type, ${NOW} AS at FROM ${jobs} WHERE status = 'processing' AND lease_expires_at > ${NOW}
  UNION ALL SELECT type, coalesce(started_at, updated_at) FROM newest WHERE attempt_count > 0)
SELECT type, jobs, ${ms('oldest')} AS oldest_ms, ${ms(NOW)} AS now_ms,
  (SELECT ${ms('max(at)')} FROM signs WHERE signs.type = overdue.type) AS sign_ms
FROM overdue ORDER BY type`

/** Rows that another program made unclaimable. The index of the claim cannot help: they are not in it, or nowhere near. */
export const COUNT_UNCLAIMABLE = ({ jobs }: Names): string => `
SELECT count(*) FILTER (WHERE priority NOT BETWEEN 1 AND 10)::int AS priorities,
  count(*) FILTER (WHERE blocked AND NOT EXISTS (SELECT 1 FROM ${jobs} AS other WHERE other.type = job.type
    AND other.latest_key = job.latest_key AND other.status = 'processing'))::int AS blocked, ${NOW} AS now
FROM ${jobs} AS job WHERE status = 'queued' AND (priority NOT BETWEEN 1 AND 10 OR blocked)`

/** The deep look: it walks every live row. */
export const COUNT_INCONSISTENT = ({ jobs, edges }: Names): string => `
SELECT count(*) FILTER (WHERE status = 'queued' AND waiting_for <> (
    SELECT count(*) FROM ${edges} AS edge WHERE edge.job_id = job.id::text AND edge.held))::int AS waiting,
  count(*) FILTER (WHERE status NOT IN ('queued', 'processing', 'completed', 'failed'))::int AS words,
  count(*) FILTER (WHERE attempt_count < 0 OR attempt_count > greatest(1, max_attempts))::int AS attempts, ${NOW} AS now
FROM ${jobs} AS job WHERE type IS NOT NULL AND status <> 'completed'`

export const COUNT_SCHEDULES = ({ schedules }: Names): string => `
SELECT count(*)::int AS schedules, count(next_at)::int AS active,
  count(*) FILTER (WHERE next_at < ${NOW} - $2::float8 * interval '1 millisecond')::int AS overdue,
  ${ms('min(next_at)')} AS oldest_ms, ${ms(NOW)} AS now_ms,
  (array_agg(name ORDER BY next_at))[1] AS oldest FROM ${schedules}`
