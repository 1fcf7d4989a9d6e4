/** Fills a `jobs` of Postgres as a foreign program would, with plain inserts that name no more than they must. */
import type { Levels } from '../contender.ts'
import { FILLED_PAYLOAD } from '../payload.ts'
import { withClient } from '../servers/postgres.ts'

/**
 * One condition of rows. Ids sort by the letter and then by number. Jobs scheduled for later have priority 1 and those
 * that wait have 5: a claim that walks its index in order would meet all of the former first.
 */
interface Condition {
  readonly letter: 'S' | 'W' | 'Z'
  readonly status: 'queued' | 'completed'
  readonly priority: number
  /** When the first is due; each further one a millisecond later. */
  readonly due: string
}

const LAST = `select max(id) as id from jobs where id >= $1 and id < $1 || '~'`
const WAITING = `select count(*) as count from jobs where status = 'queued' and priority = 5`
/** $1 letter, $2 first, $3 behind the last, $4 type, $5 status, $6 priority, $7 due. */
const FILL = `
  insert into jobs (id, type, status, priority, run_at, payload, attempt_count, started_at, completed_at, result)
  select $1::text || lpad(n, 25, '0'), $4, $5::text, $6::int, now() + $7::interval + n::int * interval '1 millisecond',
    (${FILLED_PAYLOAD})::json, case when $5 = 'completed' then 1 else 0 end,
    case when $5 = 'completed' then now() end, case when $5 = 'completed' then now() end,
    case when $5 = 'completed' then 'null'::json end
  from (select g::text as n from generate_series($2::int, $3::int - 1) as g) as numbers`

export async function fillJobs(url: string, type: string, levels: Levels): Promise<void> {
  await withClient(url, async (client) => {
    const add = async ({ letter, status, priority, due }: Condition, wanted: number): Promise<void> => {
      const last = (await client.query(LAST, [letter])).rows[0]?.id
      const first = typeof last === 'string' ? Number(last.slice(1)) + 1 : 0
      // Only those that wait are ever used up.
      const there = letter === 'W' ? Number((await client.query(WAITING)).rows[0]?.count) : first
      const end = first + Math.max(0, wanted - there)
      await client.query(FILL, [letter, first, end, type, status, priority, due])
    }
    await add({ letter: 'Z', status: 'completed', priority: 9, due: '-2 days' }, levels.finished)
    await add({ letter: 'W', status: 'queued', priority: 5, due: '-2 days' }, levels.waiting)
    await add({ letter: 'S', status: 'queued', priority: 1, due: '2 days' }, levels.scheduled)
    // As a server that has been up for a while would have it.
    await client.query('vacuum analyze jobs')
  })
}
