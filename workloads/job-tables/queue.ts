import { quote } from '../../src/engines/postgres/names.ts'
import type { TableAccess } from './access.ts'
import { accepted, type Database, numberOf, refused, type ServiceResult, textOf } from './database.ts'
import { qualified, type Shape } from './shape.ts'
import { AT, dueAt, epochMs, isDue, moment } from './sql.ts'

export interface QueueAge {
  readonly waiting: number
  /** How long the longest-due job has waited. Null if nothing is due, or the time is unknown. */
  readonly oldestMs: number | null
}

/** The ids that a dispatcher may hand to workers, the longest due first. The claim decides which worker gets one. */
export async function listDue(access: TableAccess, table: string, limit: number): Promise<ServiceResult<string[]>> {
  if (!Number.isInteger(limit) || limit < 1 || limit > 100_000) {
    return refused('invalid_argument', `'limit' is ${limit}; give a whole number from 1 to 100000`)
  }
  return access.answer(
    table,
    'listing what is due',
    async (shape) => {
      const rows = await access.rows(dueIds(shape), [access.now(), limit])
      return accepted(rows.map((row) => textOf(row, 'id') ?? ''))
    },
    'reaping',
  )
}

export async function queueAge(access: TableAccess, table: string): Promise<ServiceResult<QueueAge>> {
  return access.answer(
    table,
    'reading the age of the queue',
    async (shape) => {
      const [row = {}] = await access.rows(ageOfQueue(shape), [access.now()])
      return accepted({ waiting: numberOf(row, 'waiting') ?? 0, oldestMs: numberOf(row, 'oldest_ms') })
    },
    'reaping',
  )
}

export type ColumnValues = Readonly<Record<string, unknown>>

/** The row's `max_attempts` wins over the configured number. */
export async function insertJob(
  access: TableAccess,
  table: string,
  values: ColumnValues,
  within: Database | null,
): Promise<ServiceResult<{ readonly id: string }>> {
  return access.answer(
    table,
    'inserting',
    async () => {
      const row = { status: 'queued', max_attempts: access.settings.maxAttempts, ...values }
      const name = qualified(table, access.place.schema)
      const text = insertion(name, Object.keys(row).map(quote))
      const rows = within === null ? await access.rows(text, Object.values(row)) : await insertWithin(within, text, row)
      return accepted({ id: textOf(rows[0] ?? {}, 'id') ?? '' })
    },
    'reaping',
  )
}

async function insertWithin(within: Database, text: string, row: ColumnValues) {
  return (await within.query(text, Object.values(row))).rows
}

/** Parameters: now, limit. */
const dueIds = (shape: Shape): string => `
with ${moment('$1')}
select job.id::text as id from ${shape.name} as job
where ${isDue(shape)}
order by ${dueAt(shape)} nulls first
limit $2::int`

/** Parameter: now. A row without a due time waits since it was created. */
const ageOfQueue = (shape: Shape): string => {
  const since = shape.hasCreatedAt ? `coalesce(${dueAt(shape)}, job.created_at)` : dueAt(shape)
  return `
with ${moment('$1')}
select count(*)::text as waiting, ${epochMs(`(${AT} - min(${since}))`)} as oldest_ms
from ${shape.name} as job
where ${isDue(shape)}`
}

/** Columns are quoted. */
const insertion = (name: string, columns: readonly string[]): string => `
insert into ${name} (${columns.join(', ')})
values (${columns.map((_, index) => `$${index + 1}`).join(', ')})
returning id::text as id`
