import { createHash } from 'node:crypto'
import { backgroundClock, type Clock, systemClock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { PgClient, PgPoolClient, PgQuery } from './driver.ts'
import {
  isConflict,
  isConnectionFault,
  isStarting,
  isUnanswered,
  isUndone,
  toEngineError,
  unanswered,
} from './faults.ts'
import { Line } from './line.ts'
import type { Names } from './names.ts'

/** SQL text that depends only on the names of the tables. */
export type Statement = (names: Names) => string

/** Runs statements on any connection, or on the one of a transaction. */
export interface Queries {
  /** The rows of one statement. Its first parameter is always the time. */
  rows<Row>(statement: Statement, ...values: readonly unknown[]): Promise<readonly Row[]>
  /** Each row as a list of values, for statements that return hundreds of rows. */
  lists<Row extends readonly unknown[]>(statement: Statement, ...values: readonly unknown[]): Promise<readonly Row[]>
  /** Several statements without parameters. */
  script(statement: Statement): Promise<void>
}

/** A statement that is sent behind another. */
export interface Following {
  readonly statement: Statement
  readonly values: readonly unknown[]
}

/** Where connections come from: our pool, or the pool or client of the user. */
export interface Source {
  /** Whether its connections send a statement without waiting for the answers to those before. */
  readonly isPipelined?: boolean
  acquire(): Promise<PgPoolClient>
  close(): Promise<void>
}

/** How long a call tries to connect while the server does not answer. Nothing was sent yet, so retrying is safe. */
const CONNECT_MS = 5_000
const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 1_000
/** How often a transaction is repeated after a deadlock or a conflict. */
const CONFLICT_TRIES = 8
/** … after a pause, so that the conflicting transactions do not meet again at once. */
const CONFLICT_PAUSE_MS = 20
/**
 * How long a transaction may be idle between two statements; at most a third of `answerMs`. A process that freezes or is
 * cut off inside a transaction keeps its locks this long. Callers that wait for the locks get them before their own
 * statement times out.
 */
const IDLE_MS_MAX = 10_000
/** A slower statement may have a plan from when the table was smaller. */
const SLOW_MS = 100
/** … or be slow anyway, so plans are discarded at most this often. */
const REPLAN_MS = 5_000

export interface DatabaseSettings {
  readonly source: Source
  readonly names: Names
  readonly clock: Clock
  readonly prepare: boolean
  /** How long the answer to one statement may take before its connection is given up. */
  readonly answerMs: number
}

export class Database implements Queries {
  #names: Names
  readonly #source: Source
  readonly #clock: Clock
  readonly #prepare: boolean
  readonly #answerMs: number
  readonly #texts = new Map<Statement, { readonly text: string; readonly name: string }>()
  readonly #closing = new AbortController()
  readonly #begin: string
  #beginsEach = false
  readonly #slow = new WeakSet<PgPoolClient>()
  readonly #unanswered = new WeakSet<Pick<PgClient, 'query'>>()
  readonly #plannedAtMs = new WeakMap<PgPoolClient, number>()

  constructor({ source, names, clock, prepare, answerMs }: DatabaseSettings) {
    this.#answerMs = answerMs
    this.#begin = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${Math.ceil(Math.min(answerMs / 3, IDLE_MS_MAX))}`
    this.#names = names
    this.#source = source
    this.#clock = clock
    this.#prepare = prepare
  }

  get names(): Names {
    return this.#names
  }

  /** Sets the names with the column types that were found. Call before any other use. */
  adopt(names: Names): void {
    this.#names = names
    this.#texts.clear()
  }

  /**
   * For connections that Millrace cannot configure and whose default isolation level is not READ COMMITTED: every statement
   * then runs in its own transaction.
   */
  beginEach(): void {
    this.#beginsEach = true
  }

  /** The time passed to statements: null where the server's clock decides. */
  get now(): string | null {
    return this.#clock === systemClock || this.#clock === backgroundClock ? null : toIso(this.#clock.nowMs())
  }

  /** The local time, for values that must not be later than the next statement. */
  get nowMs(): number {
    return this.#clock.nowMs()
  }

  get monotonicMs(): number {
    return this.#clock.monotonicMs()
  }

  rows<Row>(statement: Statement, ...values: readonly unknown[]): Promise<readonly Row[]> {
    if (this.#beginsEach) return this.transaction((queries) => queries.rows<Row>(statement, ...values))
    return this.#use((client) => this.#on(client).rows<Row>(statement, ...values))
  }

  lists<Row extends readonly unknown[]>(statement: Statement, ...values: readonly unknown[]): Promise<readonly Row[]> {
    if (this.#beginsEach) return this.transaction((queries) => queries.lists<Row>(statement, ...values))
    return this.#use((client) => this.#on(client).lists<Row>(statement, ...values))
  }

  script(statement: Statement): Promise<void> {
    return this.#use((client) => this.#on(client).script(statement))
  }

  /**
   * Runs statements like this. Behind each, `next` is asked for one to send at once, so that the server runs it as soon as
   * the first has committed. It is asked only where the connection allows that. A failure of what it gives is ignored.
   */
  followedBy(next: () => Following | null): Queries {
    const follow = async <Row>(client: PgPoolClient, answer: Promise<readonly Row[]>): Promise<readonly Row[]> => {
      const following = client.pipeline === true && !this.#beginsEach ? next() : null
      if (following !== null)
        this.#on(client)
          .rows(following.statement, ...following.values)
          .catch(() => {})
      return answer
    }
    return {
      rows: (statement, ...values) =>
        this.#use((client) => follow(client, this.#on(client).rows(statement, ...values))),
      lists: (statement, ...values) => this.lists(statement, ...values),
      script: (statement) => this.script(statement),
    }
  }

  /** Whether `inLine` sends a statement before the one ahead of it is answered. */
  get isPipelined(): boolean {
    return this.#source.isPipelined === true && !this.#beginsEach
  }

  /**
   * Runs statements like this, but those under way at the same time share a connection: the server begins the next as soon
   * as the last has committed, and they never meet.
   */
  inLine(): Queries {
    if (!this.isPipelined) return this
    const line = new Line(() => this.#acquire())
    return {
      rows: (statement, ...values) => this.#use((client) => this.#on(client).rows(statement, ...values), line),
      lists: (statement, ...values) => this.#use((client) => this.#on(client).lists(statement, ...values), line),
      script: (statement) => this.#use((client) => this.#on(client).script(statement), line),
    }
  }

  /** All or nothing. Runs again from the start if the server rolled it back because of another transaction. */
  transaction<Value>(run: (queries: Queries) => Promise<Value>): Promise<Value> {
    return this.#use(async (client) => {
      await this.#send(client, { text: this.#begin, values: [] })
      try {
        const value = await run(this.#on(client))
        await this.#send(client, { text: 'COMMIT', values: [] })
        return value
      } catch (error) {
        if (!isConnectionFault(error)) await this.#send(client, { text: 'ROLLBACK', values: [] })
        throw error
      }
    })
  }

  /** Runs statements on the caller's connection, inside its transaction if it has one. */
  on(client: Pick<PgClient, 'query'>): Queries {
    return this.#on(client)
  }

  #on(client: Pick<PgClient, 'query'>): Queries {
    const ask = async (statement: Statement, values: readonly unknown[], mode: Pick<PgQuery, 'rowMode'>) => {
      const { text, name } = this.#text(statement)
      const query = { text, values: [this.now, ...values], ...(this.#prepare && { name }), ...mode }
      return (await this.#send(client, query)).rows
    }
    return {
      rows: async <Row>(statement: Statement, ...values: readonly unknown[]) =>
        (await ask(statement, values, {})) as readonly Row[],
      lists: async <Row>(statement: Statement, ...values: readonly unknown[]) =>
        (await ask(statement, values, { rowMode: 'array' })) as readonly Row[],
      script: async (statement) => void (await this.#send(client, { text: statement(this.names), values: [] })),
    }
  }

  /** An answer that does not come in time ends its connection, and with it the statements that were sent behind. */
  async #send(client: Pick<PgClient, 'query'>, query: PgQuery) {
    try {
      return await client.query({ ...query, query_timeout: this.#answerMs })
    } catch (error) {
      if (isUnanswered(error)) this.#unanswered.add(client)
      else if (isConnectionFault(error) && !isUndone(error) && this.#unanswered.has(client)) throw unanswered(error)
      throw error
    }
  }

  #text(statement: Statement) {
    const known = this.#texts.get(statement)
    if (known !== undefined) return known
    const text = statement(this.names)
    const named = { text, name: `millrace_${createHash('sha1').update(text).digest('hex').slice(0, 16)}` }
    this.#texts.set(statement, named)
    return named
  }

  async #use<Value>(run: (client: PgPoolClient) => Promise<Value>, line: Line | null = null): Promise<Value> {
    for (let tries = 1; ; tries += 1) {
      const place = await line?.join()
      const client = place?.client ?? (await this.#acquire())
      const release = (isBroken?: boolean): void =>
        place === undefined ? client.release(isBroken) : place.leave(isBroken)
      const startedAtMs = systemClock.monotonicMs()
      try {
        await this.#replan(client, startedAtMs)
        const value = await run(client)
        if (systemClock.monotonicMs() - startedAtMs > SLOW_MS) this.#slow.add(client)
        release()
        return value
      } catch (error) {
        release(isConnectionFault(error))
        if (!(isConflict(error) || isUndone(error)) || tries === CONFLICT_TRIES) throw error
        await systemClock.sleep(CONFLICT_PAUSE_MS * tries * Math.random())
      }
    }
  }

  /**
   * The server keeps the plans of prepared statements until the next analyze. A plan made for a small table would scan the
   * whole table long after it has grown. Our own connections are set up against that (connections.ts), a user's are not.
   */
  async #replan(client: PgPoolClient, nowMs: number): Promise<void> {
    if (!this.#prepare || !this.#slow.delete(client)) return
    if (nowMs - (this.#plannedAtMs.get(client) ?? Number.NEGATIVE_INFINITY) < REPLAN_MS) return
    this.#plannedAtMs.set(client, nowMs)
    await this.#send(client, { text: 'DISCARD PLANS', values: [] })
  }

  /** Retries with growing, jittered pauses while the server does not answer. */
  async #acquire(): Promise<PgPoolClient> {
    const untilMs = systemClock.monotonicMs() + CONNECT_MS
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
      try {
        return await this.#source.acquire()
      } catch (error) {
        const left = untilMs - systemClock.monotonicMs()
        if (!isConnectionFault(error) || left <= 0 || this.#closing.signal.aborted) throw error
        await systemClock.sleep(Math.min(left, waitMs * (0.5 + Math.random())), this.#closing.signal)
      }
    }
  }

  /** One attempt, for opening: a wrong address must fail at once. A server that is starting up is waited for. */
  async reach(): Promise<void> {
    try {
      const client = await this.#source.acquire().catch((error: unknown) => {
        if (isStarting(error)) return this.#acquire()
        throw error
      })
      client.release()
    } catch (error) {
      throw toEngineError(error, 'connecting')
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#source.close()
  }
}
