/** Whether the tables are those that the migrations make, read off the SQL of the migrations. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, ok } from '../../../engine/findings.ts'
import * as claim from '../claim.ts'
import * as complete from '../complete.ts'
import type { Database, Statement } from '../database.ts'
import * as deadLetters from '../dead-letters.ts'
import * as dependencies from '../dependencies.ts'
import * as enqueue from '../enqueue.ts'
import * as expired from '../expired.ts'
import * as inspector from '../inspector.ts'
import { ADDED_COLUMNS, LEASE_COLUMNS } from '../jobs-table.ts'
import * as keepLimits from '../keep-limits.ts'
import * as latestKeys from '../latest-keys.ts'
import * as leases from '../leases.ts'
import { schemaSql } from '../migrations.ts'
import { quote } from '../names.ts'
import * as outbox from '../outbox.ts'
import * as presenceStatements from '../presence-statements.ts'
import * as rateLimits from '../rate-limits.ts'
import * as retention from '../retention.ts'
import * as scheduleStatements from '../schedule-statements.ts'
import * as settle from '../settle.ts'
import { READ_COLUMNS, READ_INDEXES, READ_TRIGGERS } from './statements.ts'

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

export async function lookAtSchema(database: Database): Promise<readonly Finding[]> {
  const sql = schemaSql(database.names)
  const indexes = partsOf(sql, 'INDEX')
  const triggers = partsOf(sql, 'TRIGGER')
  const { schema } = database.names
  const found = [
    ...(await lookAtColumns(database)),
    ...compare(schema, 'index', indexes, await database.rows<FoundPart>(READ_INDEXES, schema)),
    ...compare(schema, 'trigger', triggers, await database.rows<FoundPart>(READ_TRIGGERS, schema)),
    ...(await lookAtStatements(database)),
  ]
  if (found.length > 0) return found
  return [ok('schema', `${indexes.length} indexes and ${triggers.length} triggers as the migrations make them`)]
}

async function lookAtColumns(database: Database): Promise<readonly Finding[]> {
  const columns = await database.rows<FoundColumn>(READ_COLUMNS)
  const expected = [...LEASE_COLUMNS, ...ADDED_COLUMNS]
  const names = new Set(columns.map(({ name }) => name))
  const own = new Set([...expected.map(({ name }) => name), 'id', 'arrival'])
  const { jobs } = database.names
  return [
    ...expected
      .filter(({ name }) => !names.has(name))
      .map(({ name, definition }) =>
        failure(
          'schema',
          `the column ${name} of ${jobs} is missing`,
          `As the owner run: ALTER TABLE ${jobs} ADD COLUMN ${name} ${definition};`,
        ),
      ),
    ...columns
      .filter(({ name, required }) => required && !own.has(name))
      .map(({ name }) =>
        failure(
          'schema',
          `the column ${name} of ${jobs} is yours and needs a value: every enqueue is refused`,
          `Give it a default or let it be null: ALTER TABLE ${jobs} ALTER COLUMN ${name} DROP NOT NULL;`,
        ),
      ),
  ]
}

function compare(
  schema: string,
  kind: 'index' | 'trigger',
  expected: readonly Part[],
  found: readonly FoundPart[],
): readonly Finding[] {
  const byName = new Map(found.map((part) => [part.name, part]))
  return expected.flatMap(({ name, sql }) => {
    const own = byName.get(name)
    if (own?.valid === true) return []
    if (own === undefined) return [failure('schema', `the ${kind} ${name} is missing`, `As the owner run: ${sql}`)]
    return [
      kind === 'index'
        ? failure(
            'schema',
            `the index ${name} is invalid: building it failed`,
            `As the owner run: REINDEX INDEX ${quote(schema)}.${name};`,
          )
        : failure('schema', `the trigger ${name} is switched off`, `As the owner switch it on again: ${sql}`),
    ]
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
  inspector,
  keepLimits,
  latestKeys,
  leases,
  outbox,
  presenceStatements,
  rateLimits,
  retention,
  scheduleStatements,
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

async function lookAtStatements(database: Database): Promise<readonly Finding[]> {
  const all = ownStatements()
  const parse = (chosen: typeof all): Promise<void> =>
    database.script((names) =>
      chosen
        .map(([, statement]) => `PREPARE millrace_look AS ${statement(names)}; DEALLOCATE millrace_look;`)
        .join('\n'),
    )
  try {
    await parse(all)
    return []
  } catch {
    // Which of them it was is told one by one.
  }
  const findings: Finding[] = []
  for (const one of all) {
    await parse([one]).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error)
      findings.push(
        failure('schema', `the statement ${one[0]} cannot run: ${reason}`, 'Mend what is missing above, or migrate.'),
      )
    })
  }
  return findings
}
