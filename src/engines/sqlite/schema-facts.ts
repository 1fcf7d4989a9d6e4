/** Whether the tables are those that the migrations make, compared with a fresh database in memory. */
import type { SchemaFault } from '../../doctor/schema.ts'
import { messageOf } from '../../errors.ts'
import * as claim from './claim.ts'
import * as clock from './clock.ts'
import * as counts from './counts.ts'
import { Connection, openFile } from './database.ts'
import * as deadLetters from './dead-letters.ts'
import * as dependencies from './dependencies.ts'
import * as enqueue from './enqueue.ts'
import * as expired from './expired.ts'
import * as history from './history.ts'
import * as inspector from './inspector.ts'
import * as jobLogs from './job-logs.ts'
import * as keepLimits from './keep-limits.ts'
import * as lanes from './lanes.ts'
import * as latestKeys from './latest-keys.ts'
import * as leases from './leases.ts'
import { applyMigrations } from './migrate.ts'
import * as outbox from './outbox.ts'
import * as rateLimits from './rate-limits.ts'
import * as readyJobs from './ready-jobs.ts'
import * as records from './records.ts'
import * as retention from './retention.ts'
import * as settle from './settle.ts'
import * as tenantSlots from './tenant-slots.ts'

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

/** Layout, comments and IF NOT EXISTS do not make another schema. */
function normalised(sql: string): string {
  return sql
    .replace(/--[^\n]*/g, ' ')
    .replace(/\bIF NOT EXISTS\b/gi, ' ')
    .replace(/\s+/g, ' ')
    .replace(/ ?([(),;=<>]) ?/g, '$1')
    .trim()
}

function compareTable(actual: Connection, fresh: Connection, table: string): readonly SchemaFault[] {
  const [found, expected] = [columnsOf(actual, table), columnsOf(fresh, table)]
  const byName = new Map(found.map((column) => [column.name, column]))
  const known = new Set(expected.map(({ name }) => name))
  const unique = uniqueOf(actual, table)
  return [
    ...expected.flatMap((column) => compareColumn(table, byName.get(column.name), column)),
    ...found
      .filter(({ name, notnull, dflt_value }) => !known.has(name) && notnull === 1 && dflt_value === null)
      .map(({ name }) => ({
        kind: 'required' as const,
        name: `${table}.${name}`,
        fix: `ALTER TABLE ${table} DROP COLUMN ${name};`,
      })),
    ...[...uniqueOf(fresh, table)]
      .filter((columns) => !unique.has(columns))
      .map((columns) => ({
        ...{ kind: 'duplicates' as const, table, columns },
        fix: `CREATE UNIQUE INDEX ${table}_${columns.replaceAll(', ', '_')}_unique ON ${table}(${columns});`,
      })),
  ]
}

function compareColumn(table: string, own: Column | undefined, expected: Column): readonly SchemaFault[] {
  const name = `${table}.${expected.name}`
  if (own === undefined) return [{ kind: 'missing', part: 'column', name, fix: addColumn(table, expected) }]
  if (describe(own) === describe(expected)) return []
  return [{ kind: 'retyped', name, found: describe(own), expected: describe(expected) }]
}

const describe = ({ type, notnull, dflt_value, pk }: Column): string =>
  [type, notnull === 1 && 'NOT NULL', dflt_value !== null && `DEFAULT ${dflt_value}`, pk > 0 && 'PRIMARY KEY']
    .filter(Boolean)
    .join(' ')

function addColumn(table: string, column: Column): string | null {
  const isAddable = column.pk === 0 && (column.notnull === 0 || column.dflt_value !== null)
  return isAddable ? `ALTER TABLE ${table} ADD COLUMN ${column.name} ${describe(column)};` : null
}

function comparePart({ type, name, sql }: Part, own: Part | undefined): readonly SchemaFault[] {
  const create = `${normalised(sql)};`
  if (own === undefined) return [{ kind: 'missing', part: type, name, fix: create }]
  const found = normalised(own.sql)
  if (found === normalised(sql)) return []
  return [{ kind: 'changed', part: type, name, found, fix: `DROP ${type.toUpperCase()} ${name}; ${create}` }]
}

/** Every module that has statements. */
const MODULES: readonly object[] = [
  claim,
  clock,
  counts,
  deadLetters,
  dependencies,
  enqueue,
  expired,
  history,
  inspector,
  jobLogs,
  keepLimits,
  lanes,
  latestKeys,
  leases,
  outbox,
  rateLimits,
  readyJobs,
  records,
  retention,
  settle,
  tenantSlots,
]

function unpreparable(actual: Connection): readonly SchemaFault[] {
  return MODULES.flatMap((module) => Object.entries(module)).flatMap(([name, sql]: [string, unknown]) => {
    if (typeof sql !== 'string' || !/^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(sql)) return []
    try {
      actual.handle.prepare(sql)
      return []
    } catch (error) {
      return [{ kind: 'statement', name, reason: messageOf(error) }]
    }
  })
}

export function schemaFaults(
  actual: Connection,
  nowMs: number,
): { readonly faults: readonly SchemaFault[]; readonly parts: number } {
  const fresh = new Connection(openFile(':memory:'))
  try {
    applyMigrations(fresh, nowMs)
    const [expected, own] = [partsOf(fresh), new Map(partsOf(actual).map((part) => [part.name, part]))]
    const faults = expected.flatMap((part) => {
      const found = own.get(part.name)
      return part.type === 'table' && found !== undefined
        ? compareTable(actual, fresh, part.name)
        : comparePart(part, found)
    })
    return { faults: [...faults, ...unpreparable(actual)], parts: expected.length }
  } finally {
    fresh.close()
  }
}
