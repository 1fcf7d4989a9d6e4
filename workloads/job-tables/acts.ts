/** What an operator may do to a row that the reaper would take: nothing that a live worker holds is touched. */
import { MillraceError } from '../../src/errors.ts'
import type { TableAccess } from './access.ts'
import { textOf } from './database.ts'
import { expired } from './reaper-sql.ts'
import type { Shape } from './shape.ts'
import { endedAt, ISO, moment } from './sql.ts'

export type RowAct = 'requeue' | 'fail'

export interface ActOnRow {
  readonly table: string
  readonly id: string
  readonly act: RowAct
  readonly who: string
  readonly reason: string
}

/**
 * Queues a stuck row again, due now, or fails it. Row and event (`operator:requeued`, `operator:failed`) are written in one
 * transaction. Attempts stay as they are: a row that has used them up is started once more.
 */
export async function actOnRow(access: TableAccess, { table, id, act, who, reason }: ActOnRow): Promise<void> {
  if (!access.place.tables.includes(table)) {
    throw new MillraceError('ERR_RECORD_UNKNOWN', `'${table}' is not one of the tables that are watched here`)
  }
  await access.shaped(table, 'reaping', async (shape) => {
    const statement = act === 'requeue' ? requeue(shape) : fail(shape)
    const [row] = await access.rows(statement, [access.now(), id, access.settings.leaseSec, table, who, reason])
    if (row !== undefined) return
    const [found] = await access.rows(`select status::text as status from ${shape.name} where id::text = $1`, [id])
    if (found === undefined) throw new MillraceError('ERR_RECORD_UNKNOWN', `no row of '${table}' has the id '${id}'`)
    throw new MillraceError(
      'ERR_STATE_TRANSITION',
      `row ${id} of '${table}' is ${textOf(found, 'status')} and not stuck; only a processing row whose lease has ended is changed here`,
    )
  })
}

/** Parameters: now, id, default lease in seconds, table, who, reason. The id is compared as text: it may be anything. */
const change = (shape: Shape, parts: { readonly set: string; readonly event: string }): string => `
with ${moment('$1')},
picked as (
  select job.id, job.locked_by from ${shape.name} as job
  where job.id::text = $2 and ${expired(shape, '$3')}
  for update of job
),
changed as (
  update ${shape.name} as job set locked_by = null, lease_expires_at = null, ${parts.set}
  from picked where job.id = picked.id
  returning job.id, picked.locked_by
),
event as (
  insert into ${shape.events} (job_id, data)
  select id, jsonb_build_object('type', '${parts.event}', 'table', $4::text, 'details',
    jsonb_build_object('reason', $6::text, 'who', $5::text, 'locked_by', locked_by), 'at', ${ISO})
  from changed
)
select id::text as id from changed`

const requeue = (shape: Shape): string =>
  change(shape, { set: `status = 'queued', next_earliest_run_at = null`, event: 'operator:requeued' })

const fail = (shape: Shape): string =>
  change(shape, {
    set: `status = 'failed', fail_code = 'operator', fail_reason = $6::text${endedAt(shape)}`,
    event: 'operator:failed',
  })
