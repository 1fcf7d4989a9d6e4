/** Fills a canonical `job_queue` as a foreign program would, with millions of rows in seconds. */
import { DatabaseSync } from 'node:sqlite'
import type { Levels } from '../contender.ts'
import { FILLED_PAYLOAD } from '../payload.ts'

/**
 * One condition of rows. Ids sort by the letter and then by number. Jobs scheduled for later have priority 1 and those
 * that wait have 5: a claim that walks its index in order would meet all of the former first.
 */
interface Condition {
  readonly letter: 'S' | 'W' | 'Z'
  readonly status: 'queued' | 'completed'
  readonly priority: number
  /** Unix seconds of the first; each further one is due a millisecond later. */
  readonly due: number
}

/** Answered from the index alone, whatever the number. */
const WAITING = `select count(*) as count from job_queue where status = 'queued' and priority = 5`
const LAST = `select max(id) as id from job_queue where id >= :letter and id < :letter || '~'`
const FILL = `
  insert into job_queue (id, type, status, priority, scheduled_at, payload, attempts, created_at, updated_at, started_at, completed_at, result)
  with recursive
    numbers(n) as (select :first where :first < :end union all select n + 1 from numbers where n + 1 < :end),
    rows(n, due) as (select n, strftime('%Y-%m-%dT%H:%M:%fZ', :due + n / 1000.0, 'unixepoch') from numbers)
  select :letter || printf('%025d', n), :type, :status, :priority, due, ${FILLED_PAYLOAD},
    iif(:status = 'completed', 1, 0), :now, :now,
    iif(:status = 'completed', :now, null), iif(:status = 'completed', :now, null), iif(:status = 'completed', 'null', null)
  from rows`

export function fillJobQueue(file: string, type: string, levels: Levels): void {
  const db = new DatabaseSync(file, { timeout: 10_000 })
  // Data that can be made again needs no care for a power cut.
  db.exec('pragma synchronous = off; pragma cache_size = -262144')
  const day = 86_400
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const add = (condition: Condition, wanted: number): void => {
    const { letter, status, priority, due } = condition
    const last = db.prepare(LAST).get({ letter })?.id
    const first = typeof last === 'string' ? Number(last.slice(1)) + 1 : 0
    // Only those that wait are ever used up.
    const there = letter === 'W' ? Number(db.prepare(WAITING).get()?.count) : first
    const now = new Date(nowSeconds * 1_000).toISOString()
    const end = first + Math.max(0, wanted - there)
    db.prepare(FILL).run({ letter, type, status, priority, due, first, end, now })
  }
  add({ letter: 'Z', status: 'completed', priority: 9, due: nowSeconds - 2 * day }, levels.finished)
  add({ letter: 'W', status: 'queued', priority: 5, due: nowSeconds - 2 * day }, levels.waiting)
  add({ letter: 'S', status: 'queued', priority: 1, due: nowSeconds + 2 * day }, levels.scheduled)
  // All is on the disk before anybody is measured: the system would write gigabytes meanwhile.
  db.exec('pragma synchronous = full; pragma wal_checkpoint(truncate)')
  db.close()
}
