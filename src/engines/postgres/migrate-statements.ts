/** The statements around the schema's version, and the rights of a worker. */
import { literal, type Names, quote } from './names.ts'
import { NOW } from './statements.ts'

/** What opening must know before it touches a table. */
export const LOOK_AT_SERVER = (): string => `
SELECT current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS standby,
  to_regclass($2) IS NOT NULL AS migrated,
  current_setting('default_transaction_isolation') AS isolation, current_setting('server_encoding') AS encoding,
  current_setting('array_nulls') AS array_nulls, ${NOW} AS now`

/** How the columns that a user's own table may have had before us were declared. */
export const READ_TYPES = ({ jobs, events }: Names): string => {
  const typeOf = (table: string, column: string): string => `(SELECT format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = to_regclass('${table.replaceAll("'", "''")}') AND attname = '${column}' AND NOT attisdropped)`
  return `SELECT ${typeOf(jobs, 'id')} AS "idType", ${typeOf(jobs, 'payload')} AS "payloadType",
  ${typeOf(events, 'job_id')} AS "eventIdType", ${NOW} AS now`
}

export const READ_VERSION = ({ versions }: Names): string =>
  `SELECT coalesce(max(version), 0) AS version, ${NOW} AS now FROM ${versions}`

/** Two who migrate at once come one after the other, and the second finds nothing to do. It waits for as long as the first takes. */
export const LOCK_MIGRATION = ({ schema }: Names): string => `
SELECT pg_advisory_xact_lock(hashtext('millrace_schema'), hashtext(${literal(schema)}));
SET LOCAL lock_timeout = '10s';`

/** CREATE SCHEMA needs a right on the database even where the schema is there, which its owner need not have. */
export const CREATE_HOME = ({ schema, versions }: Names): string => `
DO $$ BEGIN
  IF to_regnamespace(${literal(quote(schema))}) IS NULL THEN
    CREATE SCHEMA ${quote(schema)};
  END IF;
END $$;
CREATE TABLE IF NOT EXISTS ${versions} (
  version INT PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at TIMESTAMPTZ NOT NULL
);`

export function writeVersion(version: number, name: string): (names: Names) => string {
  return ({ versions }) =>
    `INSERT INTO ${versions} (version, name, applied_at) VALUES (${version}, ${literal(name)}, now()) ON CONFLICT DO NOTHING;`
}

/** All that a worker, a client or a keeper needs, and nothing that changes the schema or the audit. */
export function workerRights(names: Names): readonly { readonly rights: string; readonly on: readonly string[] }[] {
  const jobs = [names.jobs, names.events, names.latest, names.limits, names.edges]
  const beside = [names.schedules, names.leaders, names.presence, names.pauses, names.outbox]
  return [
    { rights: 'SELECT, INSERT, UPDATE, DELETE', on: [...jobs, ...beside] },
    { rights: 'SELECT, INSERT', on: [names.audit] },
    { rights: 'SELECT', on: [names.versions] },
    { rights: 'USAGE', on: [names.arrivals, names.eventNumbers] },
  ]
}

export function grantSql(names: Names, role: string): string {
  const to = `TO ${quote(role)}`
  return [
    `GRANT USAGE ON SCHEMA ${quote(names.schema)} ${to};`,
    ...workerRights(names).map(
      ({ rights, on }) => `GRANT ${rights} ON ${rights === 'USAGE' ? 'SEQUENCE ' : ''}${on.join(', ')} ${to};`,
    ),
  ].join('\n')
}
