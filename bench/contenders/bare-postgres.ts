/**
 * The ceiling on Postgres: the canonical table and indexes, and one statement that completes a batch and claims the
 * next. What an engine adds to it is what its promises cost.
 */
import { Pool } from 'pg'
import type { Contender, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { CONNECTIONS } from '../servers/postgres.ts'
import { workInTurns } from './turns.ts'

const CLAIM_SIZE = 500
/** Two loops, so that the server has something to do while this process looks at what it got. */
const LOOPS = 2

const SCHEMA = `
  create table if not exists jobs (
    id text collate "C" primary key,
    type text not null,
    status text not null default 'queued' check (status in ('queued', 'processing', 'completed', 'failed')),
    payload json,
    priority int not null default 5,
    run_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz,
    result json,
    locked_by text,
    lease_expires_at timestamptz,
    last_heartbeat_at timestamptz,
    attempt_count int not null default 0,
    max_attempts int not null default 3,
    fail_code text,
    fail_reason text,
    stage text,
    next_earliest_run_at timestamptz,
    expected_duration_ms int
  );
  create index if not exists idx_jobs_status_lease on jobs (status, lease_expires_at);
  create index if not exists idx_jobs_claim on jobs (priority, run_at) where status = 'queued'`

const INSERT = {
  name: 'insert',
  text: `insert into jobs (id, type, payload) select id, 'bench', payload from unnest($1::text[], $2::json[]) as new (id, payload)`,
}
const TURN = {
  name: 'turn',
  text: `
    with done as (
      update jobs set status = 'completed', completed_at = now(), updated_at = now(), result = 'null',
        locked_by = null, lease_expires_at = null
      where id = any ($1::text[]) and status = 'processing' and locked_by = $2
    )
    update jobs set status = 'processing', locked_by = $2, lease_expires_at = now() + interval '60 seconds',
      last_heartbeat_at = now(), started_at = now(), updated_at = now(), attempt_count = attempt_count + 1
    where id = any (array(
      select id from jobs where status = 'queued' and run_at <= now()
      order by priority, run_at limit $3 for update skip locked
    ))
    returning id, payload`,
}
const REMAINING = `select count(*) as count from jobs where status in ('queued', 'processing')`

interface Held {
  readonly id: string
  readonly payload: Payload
}

class BarePostgres implements Contender {
  readonly bulkSize = 1_000
  #pool: Pool | null = null
  #nextId = 0

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('the bare store needs a server')
    this.#pool = new Pool({ connectionString: url, max: CONNECTIONS })
    await this.#pool.query(SCHEMA)
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.enqueueBulk([payload])
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const ids = payloads.map(() => this.#newId())
    await this.#opened.query({ ...INSERT, values: [ids, payloads.map((payload) => JSON.stringify(payload))] })
  }

  async work(request: WorkRequest): Promise<Working> {
    return workInTurns<Held>(request, (held, max) => this.#turn(held, max), { loops: LOOPS, size: CLAIM_SIZE })
  }

  async remaining(): Promise<number> {
    const { rows } = await this.#opened.query(REMAINING)
    return Number(rows[0]?.count)
  }

  async teardown(): Promise<void> {
    await this.#opened.end()
  }

  /** Completes what is held and claims the next, in one statement: one wait for the disk for both. */
  async #turn(held: readonly Held[], max: number): Promise<readonly Held[]> {
    const ids = held.map((each) => each.id)
    const { rows } = await this.#opened.query<Held>({ ...TURN, values: [ids, `bench:${process.pid}`, max] })
    return rows
  }

  /** Ascending like a ULID and as long. */
  #newId(): string {
    this.#nextId += 1
    return `${String(process.pid).padStart(8, '0')}${String(this.#nextId).padStart(18, '0')}`
  }

  get #opened(): Pool {
    if (this.#pool === null) throw new Error('setup comes first')
    return this.#pool
  }
}

export function create(): Contender {
  return new BarePostgres()
}
