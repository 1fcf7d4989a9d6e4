/** Whether the tables are those that the migrations make, compared with a fresh database in memory. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, ok, warning } from '../../../engine/findings.ts'
import * as claim from '../claim.ts'
import * as clock from '../clock.ts'
import { Connection, openFile } from '../database.ts'
import * as deadLetters from '../dead-letters.ts'
import * as dependencies from '../dependencies.ts'
import * as enqueue from '../enqueue.ts'
import * as expired from '../expired.ts'
import * as history from '../history.ts'
import * as inspector from '../inspector.ts'
import * as keepLimits from '../keep-limits.ts'
import * as latestKeys from '../latest-keys.ts'
import * as leases from '../leases.ts'
import { applyMigrations } from '../migrate.ts'
import * as outbox from '../outbox.ts'
import * as presenceStatements from '../presence-statements.ts'
import * as rateLimits from '../rate-limits.ts'
import * as retention from '../retention.ts'
import * as settle from '../settle.ts'

interface Part {
  readonly type: 'table' | 'index' | 'trigger'
  readonly name: string
  readonly tbl_name: string
  readonly sql: string
}

interface Column {
  readonly name: string
  readonly type: string
  readonly notnull: number
  readonly dflt_value: string | null
  readonly pk: number
}

const PARTS = `SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL`

const partsOf = (connection: Connection): readonly Part[] =>
  connection.handle.prepare(PARTS).all() as unknown[] as Part[]

/** Table names come from our own migrations, so they need no escaping beyond the quotes. */
const columnsOf = (connection: Connection, table: string): readonly Column[] =>
  connection.handle.prepare(`PRAGMA table_info("${table}")`).all() as unknown[] as Column[]

/** Each set of columns that a table keeps unique, as text. */
function uniqueOf(connection: Connection, table: string): ReadonlySet<string> {
  const indexes = connection.handle.prepare(`PRAGMA index_list("${table}")`).all() as {
    name: string
    unique: number
    partial: number
  }[]
  const whole = indexes.filter(({ unique, partial }) => unique === 1 && partial === 0)
  return new Set(
    whole.map(({ name }) => {
      const columns = connection.handle.prepare(`PRAGMA index_info("${name.replaceAll('"', '""')}")`).all()
      return (columns as { name: string }[]).map((column) => column.name).join(', ')
    }),
  )
}

/** Layout, comments and the guard against repetition do not make another schema. */
export function normalised(sql: string): string {
  return sql
    .replace(/--[^\n]*/g, ' ')
    .replace(/\bIF NOT EXISTS\b/gi, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ ?([(),;=<>]) ?/g, '$1')
    .trim()
}

function compareTable(actual: Connection, fresh: Connection, table: string): readonly Finding[] {
  const [found, expected] = [columnsOf(actual, table), columnsOf(fresh, table)]
  const byName = new Map(found.map((column) => [column.name, column]))
  const findings = expected.flatMap((column) => {
    const own = byName.get(column.name)
    if (own === undefined) return [missing(`the column ${table}.${column.name}`, addColumn(table, column))]
    return describe(own) === describe(column) ? [] : [changedColumn(table, own, column)]
  })
  const known = new Set(expected.map(({ name }) => name))
  const blocking = found.filter(
    ({ name, notnull, dflt_value }) => !known.has(name) && notnull === 1 && dflt_value === null,
  )
  const unique = uniqueOf(actual, table)
  const lost = [...uniqueOf(fresh, table)].filter((columns) => !unique.has(columns))
  return [
    ...findings,
    ...blocking.map(({ name }) =>
      failure(
        'schema',
        `the column ${table}.${name} is not of Millrace and has no default: every new row is refused`,
        `Give it a default, let it be null, or drop it: ALTER TABLE ${table} DROP COLUMN ${name};`,
      ),
    ),
    ...lost.map((columns) =>
      failure(
        'schema',
        `${table} does not keep ${columns} unique: the same job can be stored twice`,
        `Remove duplicates, then CREATE UNIQUE INDEX ${table}_${columns.replaceAll(', ', '_')}_unique ON ${table}(${columns});`,
      ),
    ),
  ]
}

const describe = ({ type, notnull, dflt_value, pk }: Column): string =>
  [type, notnull === 1 && 'NOT NULL', dflt_value !== null && `DEFAULT ${dflt_value}`, pk > 0 && 'PRIMARY KEY']
    .filter(Boolean)
    .join(' ')

function addColumn(table: string, column: Column): string {
  const isAddable = column.pk === 0 && (column.notnull === 0 || column.dflt_value !== null)
  return isAddable
    ? `Stop the workers and run: ALTER TABLE ${table} ADD COLUMN ${column.name} ${describe(column)};`
    : 'It cannot be added to a table with rows: restore a backup, or move the rows into a fresh file made by millrace migrate.'
}

const missing = (what: string, advice: string): Finding => failure('schema', `${what} is missing`, advice)

function changedColumn(table: string, own: Column, expected: Column): Finding {
  return warning(
    'schema',
    `the column ${table}.${own.name} is '${describe(own)}' where Millrace makes '${describe(expected)}'`,
    `Copy the rows into a fresh file made by 'millrace migrate', unless you made the table so on purpose.`,
  )
}

function comparePart(part: Part, own: Part | undefined): readonly Finding[] {
  const kind = part.type.toUpperCase()
  const create = `${normalised(part.sql)};`
  if (own === undefined) {
    return [missing(`the ${part.type} ${part.name}`, `Stop the workers and run: ${create}`)]
  }
  if (normalised(own.sql) === normalised(part.sql)) return []
  return [
    warning(
      'schema',
      `the ${part.type} ${part.name} is not the one that Millrace makes: ${normalised(own.sql)}`,
      `Stop the workers and run: DROP ${kind} ${part.name}; ${create}`,
    ),
  ]
}

/** Every module that has statements. */
const MODULES: readonly object[] = [
  claim,
  clock,
  deadLetters,
  dependencies,
  enqueue,
  expired,
  history,
  inspector,
  keepLimits,
  latestKeys,
  leases,
  outbox,
  presenceStatements,
  rateLimits,
  retention,
  settle,
]

/** A statement that cannot be prepared fails at every call: that is what drift costs. */
function unpreparable(actual: Connection): readonly Finding[] {
  return MODULES.flatMap((module) => Object.entries(module)).flatMap(([name, sql]: [string, unknown]) => {
    if (typeof sql !== 'string' || !/^\s*(?:SELECT|INSERT|UPDATE|DELETE)\b/.test(sql)) return []
    try {
      actual.handle.prepare(sql)
      return []
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return [
        failure('schema', `the statement ${name} cannot run: ${reason}`, 'Mend what is missing or changed above.'),
      ]
    }
  })
}

export function lookAtSchema(actual: Connection, nowMs: number): readonly Finding[] {
  const fresh = new Connection(openFile(':memory:'))
  try {
    applyMigrations(fresh, nowMs)
    const [expected, own] = [partsOf(fresh), new Map(partsOf(actual).map((part) => [part.name, part]))]
    const findings = expected.flatMap((part) => {
      const found = own.get(part.name)
      return part.type === 'table' && found !== undefined
        ? compareTable(actual, fresh, part.name)
        : comparePart(part, found)
    })
    const all = [...findings, ...unpreparable(actual)]
    return all.length > 0
      ? all
      : [ok('schema', `${expected.length} tables, indexes and triggers as the migrations make them`)]
  } finally {
    fresh.close()
  }
}
