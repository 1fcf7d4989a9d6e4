/**
 * The ceiling: how fast the store itself can be, with nothing around it. The table, its indexes and its trigger are the
 * canonical ones, so that what an engine adds to them is what its promises cost.
 */
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Contender, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { workInTurns } from './turns.ts'

const CLAIM_SIZE = 100

const SCHEMA = `
  create table if not exists job_queue (
    id text primary key,
    type text not null,
    status text not null default 'queued'
      check (status in ('queued', 'in_progress', 'completed', 'failed', 'dead_letter')),
    priority integer not null default 5 check (priority between 1 and 10),
    scheduled_at text not null,
    lease_owner text,
    lease_until text,
    payload text not null,
    idempotency_key text unique,
    attempts integer not null default 0,
    max_retries integer not null default 3,
    error text,
    created_at text not null,
    updated_at text not null,
    started_at text,
    completed_at text,
    result text
  );
  create index if not exists idx_job_queue_dequeue on job_queue (status, priority, scheduled_at) where status = 'queued';
  create index if not exists idx_job_queue_lease_expiry on job_queue (lease_until) where status = 'in_progress';
  create index if not exists idx_job_queue_type on job_queue (type, status);
  create index if not exists idx_job_queue_idempotency on job_queue (idempotency_key);
  create trigger if not exists job_queue_updated_at
    after update of id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key,
      attempts, max_retries, error, created_at, started_at, completed_at, result on job_queue
    when new.updated_at is old.updated_at
    begin update job_queue set updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') where id = new.id; end;
`

const INSERT = `
  insert into job_queue (id, type, scheduled_at, payload, created_at, updated_at) values (?, 'bench', ?3, ?2, ?3, ?3)`
const CLAIM = `
  update job_queue set status = 'in_progress', lease_owner = ?1, lease_until = ?2, started_at = ?3, updated_at = ?3,
    attempts = attempts + 1
  where id in (select id from job_queue where status = 'queued' and scheduled_at <= ?3
    order by priority, scheduled_at limit ?4)
  returning id, payload`
const COMPLETE = `
  update job_queue set status = 'completed', completed_at = ?2, updated_at = ?2, result = 'null',
    lease_owner = null, lease_until = null
  where id = ?1 and status = 'in_progress' and lease_owner = ?3`
const REMAINING = `select count(*) as count from job_queue where status in ('queued', 'in_progress')`

interface Held {
  readonly id: string
  readonly payload: Payload
}

class BareStore implements Contender {
  readonly bulkSize = 1_000
  #open: { db: DatabaseSync; insert: StatementSync; claim: StatementSync; complete: StatementSync } | null = null
  #nextId = 0

  async setup(place: Place): Promise<void> {
    const db = new DatabaseSync(join(place.dir, 'bare.db'), { timeout: 5_000 })
    db.exec('pragma journal_mode = wal; pragma synchronous = full')
    db.exec(SCHEMA)
    // From here a busy file is retried without blocking the event loop.
    db.exec('pragma busy_timeout = 0')
    this.#open = { db, insert: db.prepare(INSERT), claim: db.prepare(CLAIM), complete: db.prepare(COMPLETE) }
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.enqueueBulk([payload])
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const { insert } = this.#opened
    const nowText = new Date().toISOString()
    await this.#write(() => {
      for (const payload of payloads) insert.run(this.#newId(), JSON.stringify(payload), nowText)
    })
  }

  async work(request: WorkRequest): Promise<Working> {
    return workInTurns<Held>(request, (held, max) => this.#turn(held, max), { loops: 1, size: CLAIM_SIZE })
  }

  async remaining(): Promise<number> {
    return Number(this.#opened.db.prepare(REMAINING).get()?.count)
  }

  async teardown(): Promise<void> {
    this.#opened.db.close()
  }

  /** Completes what is held and claims the next, in one transaction: one wait for the disk for both. */
  #turn(held: readonly Held[], max: number): Promise<readonly Held[]> {
    const { claim, complete } = this.#opened
    const owner = `bench:${process.pid}`
    const nowMs = Date.now()
    const nowText = new Date(nowMs).toISOString()
    return this.#write(() => {
      for (const each of held) complete.run(each.id, nowText, owner)
      const rows = max === 0 ? [] : claim.all(owner, new Date(nowMs + 60_000).toISOString(), nowText, max)
      return rows.map((row) => ({ id: String(row.id), payload: JSON.parse(String(row.payload)) }))
    })
  }

  async #write<Answer>(run: () => Answer): Promise<Answer> {
    const { db } = this.#opened
    for (;;) {
      try {
        db.exec('begin immediate')
        break
      } catch (error) {
        if (!isBusy(error)) throw error
        await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 4))
      }
    }
    try {
      const answer = run()
      db.exec('commit')
      return answer
    } catch (error) {
      if (db.isTransaction) db.exec('rollback')
      throw error
    }
  }

  /** Ascending like a ULID and as long. */
  #newId(): string {
    this.#nextId += 1
    return `${String(process.pid).padStart(8, '0')}${String(this.#nextId).padStart(18, '0')}`
  }

  get #opened() {
    if (this.#open === null) throw new Error('setup comes first')
    return this.#open
  }
}

const SQLITE_BUSY = 5

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && Number(error.errcode) % 256 === SQLITE_BUSY
}

export function create(): Contender {
  return new BareStore()
}
