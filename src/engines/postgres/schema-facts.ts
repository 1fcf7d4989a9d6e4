/** Whether the tables are those that the migrations make, read off the SQL of the migrations. */
import type { SchemaFault } from '../../doctor/schema.ts'
import { messageOf } from '../../errors.ts'
import * as claim from './claim.ts'
import * as complete from './complete.ts'
import type { Database, Statement } from './database.ts'
import * as deadLetters from './dead-letters.ts'
import * as dependencies from './dependencies.ts'
import * as enqueue from './enqueue.ts'
import * as expired from './expired.ts'
import { NOW } from './fragments.ts'
import * as history from './history.ts'
import * as inspector from './inspector.ts'
import * as jobLogs from './job-logs.ts'
import { ADDED_COLUMNS, LEASE_COLUMNS } from './jobs-table.ts'
import * as keepLimits from './keep-limits.ts'
import * as latestKeys from './latest-keys.ts'
import * as leases from './leases.ts'
import { schemaSql } from './migrations.ts'
import { type Names, quote } from './names.ts'
import * as outbox from './outbox.ts'
import * as rateLimits from './rate-limits.ts'
import * as records from './records.ts'
import * as retention from './retention.ts'
import * as settle from './settle.ts'

interface Part {
  readonly name: string
  readonly sql: string
}

interface FoundPart {
  readonly name: string
  readonly valid: boolean
}

interface FoundColumn {
  readonly name: string
  /** Not null and without a default. */
  readonly required: boolean
}

/** Each CREATE INDEX or CREATE TRIGGER of the migrations whose table no later one drops. */
export function partsOf(sql: string, kind: 'INDEX' | 'TRIGGER'): readonly Part[] {
  const create = new RegExp(`^CREATE (?:UNIQUE )?${kind} (?:IF NOT EXISTS )?(\\w+)[^;]*;`, 'gm')
  const gone = [...sql.matchAll(/^DROP TABLE IF EXISTS ([^;]+);/gm)].map(([, table]) => ` ON ${table} `)
  return [...sql.matchAll(create)]
    .map(([text, name = '']) => ({ name, sql: text.replace(/\s+/g, ' ') }))
    .filter((part) => !gone.some((table) => part.sql.includes(table)))
}

const READ_COLUMNS = ({ jobs }: Names): string => `
SELECT attname AS name, attnotnull AND NOT atthasdef AND attidentity = '' AS required, ${NOW} AS now FROM pg_attribute
WHERE attrelid = to_regclass('${jobs.replaceAll("'", "''")}') AND attnum > 0 AND NOT attisdropped`

const READ_INDEXES = (): string => `
SELECT class.relname AS name, index.indisvalid AND index.indisready AS valid, ${NOW} AS now
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace WHERE space.nspname = $2`

const READ_TRIGGERS = (): string => `
SELECT tgname AS name, tgenabled <> 'D' AS valid, ${NOW} AS now
FROM pg_trigger JOIN pg_class AS class ON class.oid = tgrelid
JOIN pg_namespace AS space ON space.oid = class.relnamespace WHERE space.nspname = $2 AND NOT tgisinternal`

/** The faults, and how many indexes and triggers were compared. */
export async function schemaFaults(database: Database): Promise<[faults: readonly SchemaFault[], parts: number]> {
  const sql = schemaSql(database.names)
  const [indexes, triggers] = [partsOf(sql, 'INDEX'), partsOf(sql, 'TRIGGER')]
  const { schema } = database.names
  const faults = [
    ...(await columnFaults(database)),
    ...compare(schema, 'index', indexes, await database.rows<FoundPart>(READ_INDEXES, schema)),
    ...compare(schema, 'trigger', triggers, await database.rows<FoundPart>(READ_TRIGGERS, schema)),
    ...(await statementFaults(database)),
  ]
  return [faults, indexes.length + triggers.length]
}

async function columnFaults(database: Database): Promise<readonly SchemaFault[]> {
  const columns = await database.rows<FoundColumn>(READ_COLUMNS)
  const expected = [...LEASE_COLUMNS, ...ADDED_COLUMNS]
  const names = new Set(columns.map(({ name }) => name))
  const own = new Set([...expected.map(({ name }) => name), 'id', 'arrival'])
  const { jobs } = database.names
  return [
    ...expected
      .filter(({ name }) => !names.has(name))
      .map(({ name, definition }) => ({
        ...{ kind: 'missing' as const, part: 'column', name: `${jobs}.${name}` },
        fix: `ALTER TABLE ${jobs} ADD COLUMN ${name} ${definition};`,
      })),
    ...columns
      .filter(({ name, required }) => required && !own.has(name))
      .map(({ name }) => ({
        ...{ kind: 'required' as const, name: `${jobs}.${name}` },
        fix: `ALTER TABLE ${jobs} ALTER COLUMN ${name} DROP NOT NULL;`,
      })),
  ]
}

function compare(
  schema: string,
  part: 'index' | 'trigger',
  expected: readonly Part[],
  found: readonly FoundPart[],
): readonly SchemaFault[] {
  const byName = new Map(found.map((own) => [own.name, own]))
  return expected.flatMap(({ name, sql }): readonly SchemaFault[] => {
    const own = byName.get(name)
    if (own?.valid === true) return []
    if (own === undefined) return [{ kind: 'missing', part, name, fix: sql }]
    return part === 'index'
      ? [{ kind: 'invalid', name, fix: `REINDEX INDEX ${quote(schema)}.${name};` }]
      : [{ kind: 'disabled', name, fix: sql }]
  })
}

/** Every module that has statements. */
const MODULES: readonly object[] = [
  claim,
  complete,
  deadLetters,
  dependencies,
  enqueue,
  expired,
  history,
  inspector,
  jobLogs,
  keepLimits,
  latestKeys,
  leases,
  outbox,
  rateLimits,
  records,
  retention,
  settle,
]

/** Those that are one statement. A statement that the server cannot parse fails at every call: that is what drift costs. */
export function ownStatements(): readonly (readonly [name: string, statement: Statement])[] {
  return MODULES.flatMap((module) =>
    Object.entries<unknown>({ ...module }).flatMap(([name, made]) =>
      typeof made === 'function' && /^[A-Z][A-Z_]+$/.test(name) ? [[name, made as Statement] as const] : [],
    ),
  )
}

async function statementFaults(database: Database): Promise<readonly SchemaFault[]> {
  const all = ownStatements()
  const parse = (chosen: typeof all): Promise<void> =>
    database.script((names) =>
      chosen
        .map(([, statement]) => `PREPARE millrace_check AS ${statement(names)}; DEALLOCATE millrace_check;`)
        .join('\n'),
    )
  try {
    await parse(all)
    return []
  } catch {
    // The faulty ones are found one by one.
  }
  const faults: SchemaFault[] = []
  for (const one of all) {
    await parse([one]).catch((error: unknown) => {
      faults.push({ kind: 'statement', name: one[0], reason: messageOf(error) })
    })
  }
  return faults
}
