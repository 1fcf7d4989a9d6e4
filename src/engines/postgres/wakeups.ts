import { randomBytes } from 'node:crypto'
import { type Clock, sleepWith, systemClock, watchEvery } from '../../time/clock.ts'
import type { Queries } from './database.ts'
import type { PgClient, PgNotification } from './driver.ts'
import { NOW } from './fragments.ts'
import { type Names, quote } from './names.ts'

type Wake = () => void

/** The poll is spread so that many processes do not ask at once. */
const JITTER = 0.25

/**
 * Wakes those who wait when there may be work. This process and the listening connection tell by `notify`; a poll in
 * real time is enough where neither can, for example for a row that another program inserted.
 */
export class Wakeups {
  readonly #clock: Clock
  readonly #pollMs: number
  readonly #waiting = new Set<Wake>()
  #changes = 0
  #stop: (() => void) | null = null

  constructor(clock: Clock, pollMs: number) {
    this.#clock = clock
    this.#pollMs = pollMs
  }

  /** Read it before looking at the database: a change after that is then not missed by `wait`. */
  get changes(): number {
    return this.#changes
  }

  /** Waiters look again; nobody is told what changed. */
  notify(): void {
    this.#changes += 1
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves on a change since `seen`, at the next poll, after `ms` of the injected clock, or when `signal` aborts. */
  wait(ms: number, { seen, signal }: { readonly seen: number; readonly signal: AbortSignal }): Promise<void> {
    if (seen !== this.#changes) return Promise.resolve()
    const woken = new AbortController()
    const wake = (): void => woken.abort()
    this.#waiting.add(wake)
    this.#tune()
    const until = AbortSignal.any([signal, woken.signal])
    return sleepWith((delayMs, run) => this.#clock.after(delayMs, run), ms, until).finally(() => {
      this.#waiting.delete(wake)
      this.#tune()
    })
  }

  close(): void {
    this.notify()
    this.#waiting.clear()
    this.#tune()
  }

  /** With nobody waiting there is no timer at all. */
  #tune(): void {
    if (this.#waiting.size === 0) {
      this.#stop?.()
      this.#stop = null
      return
    }
    const everyMs = this.#pollMs * (1 - JITTER + 2 * JITTER * Math.random())
    this.#stop ??= watchEvery(everyMs, () => this.notify())
  }
}

export const NOTIFY = (): string => `SELECT pg_notify($2, $3) WHERE ${NOW} IS NOT NULL`

/**
 * What is told: there is new work; there is work that may stand before what was taken last; someone lost a lease; is
 * this connection still heard.
 */
export type Notification = 'work' | 'earlier' | 'lost' | 'beat'

/** A connection that stays, for LISTEN, and what gives it back. */
export interface ListenConnection {
  readonly client: PgClient
  close(): Promise<void>
}

/** How often work is announced at most: every NOTIFY takes one lock of the whole server when it commits. */
const ANNOUNCE_MS = 10

/** How often the way from a pool's connection to the listening one is tried, and how long it may take. */
const BEAT_MS = 15_000

const ANSWER_MS = 5_000

const RETRY_MS_MIN = 100

const RETRY_MS_MAX = 30_000

interface ChannelSettings {
  readonly queries: Queries
  readonly names: Names
  /** Null where there is no connection that could listen. */
  readonly connect: (() => Promise<ListenConnection>) | null
  onNotification(notification: Notification): void
}

/**
 * Tells other processes of this schema and hears of theirs. It only saves time: whoever waits also polls.
 *
 * A connection that is open and yet deaf (a pooler took it, a proxy forgot it) would go unnoticed, so a beat is sent
 * through another connection and must come back through this one; if it does not, a new connection is made.
 */
export class NotifyChannel {
  readonly #settings: ChannelSettings
  /** Our own notification come back to us; this tells them apart. */
  readonly #self = randomBytes(6).toString('base64url')
  readonly #closing = new AbortController()
  #announced = Number.NEGATIVE_INFINITY
  #announcing: (() => void) | null = null
  #beat: (() => void) | null = null
  #listening: Promise<void> = Promise.resolve()
  #isListening = false
  #isEarlier = false

  constructor(settings: ChannelSettings) {
    this.#settings = settings
  }

  /** Whether the last beat came back. */
  get isListening(): boolean {
    return this.#isListening
  }

  start(): void {
    const { connect } = this.#settings
    if (connect !== null) this.#listening = this.#keepListening(connect)
  }

  /** There may be work: at once, and then at most once in a while, the last time never left out. */
  announce(notification: 'work' | 'earlier'): void {
    if (notification === 'earlier') this.#isEarlier = true
    if (this.#announcing !== null || this.#closing.signal.aborted) return
    const leftMs = this.#announced + ANNOUNCE_MS - systemClock.monotonicMs()
    if (leftMs <= 0) {
      this.#announceNow()
      return
    }
    this.#announcing = systemClock.after(leftMs, () => {
      this.#announcing = null
      this.#announceNow()
    })
  }

  #announceNow(): void {
    this.#announced = systemClock.monotonicMs()
    const notification = this.#isEarlier ? 'earlier' : 'work'
    this.#isEarlier = false
    void this.send(notification)
  }

  /** Within the given transaction, or by itself. Failing is harmless: the others poll. */
  async send(notification: Notification, queries: Queries = this.#settings.queries): Promise<void> {
    await queries.rows(NOTIFY, this.#settings.names.channel, `${notification} ${this.#self}`).catch(() => {})
  }

  /** The way by which a user's transaction tells when it commits. */
  async sendWithin(queries: Queries): Promise<void> {
    await queries.rows(NOTIFY, this.#settings.names.channel, 'earlier')
  }

  async #keepListening(connect: () => Promise<ListenConnection>): Promise<void> {
    let waitMs = RETRY_MS_MIN
    while (!this.#closing.signal.aborted) {
      const wasHeard = await this.#listen(connect).catch(() => false)
      this.#isListening = false
      if (this.#closing.signal.aborted) return
      // What was said meanwhile was not heard.
      this.#settings.onNotification('earlier')
      this.#settings.onNotification('lost')
      waitMs = wasHeard ? RETRY_MS_MIN : Math.min(waitMs * 2, RETRY_MS_MAX)
      await systemClock.sleep(waitMs * (0.5 + Math.random()), this.#closing.signal)
    }
  }

  /** Resolves when the connection is gone or deaf: whether it had been heard at all. */
  async #listen(connect: () => Promise<ListenConnection>): Promise<boolean> {
    const { names } = this.#settings
    const connection = await connect()
    const gone = new AbortController()
    const end = (): void => gone.abort()
    const hear = (notification: PgNotification): void => {
      if (notification.channel === names.channel) this.#receive(notification.payload ?? '')
    }
    connection.client.on('notification', hear)
    connection.client.on('end', end)
    connection.client.on('error', end)
    try {
      await connection.client.query({ text: `LISTEN ${quote(names.channel)}`, values: [], query_timeout: ANSWER_MS })
      const ended = AbortSignal.any([gone.signal, this.#closing.signal])
      let wasHeard = false
      while (!ended.aborted) {
        if (!(await this.#isAnswered(ended))) break
        wasHeard = true
        this.#isListening = true
        await systemClock.sleep(BEAT_MS, ended)
      }
      return wasHeard
    } finally {
      connection.client.removeListener('notification', hear)
      connection.client.removeListener('end', end)
      await connection.close().catch(() => {})
    }
  }

  #isAnswered(ended: AbortSignal): Promise<boolean> {
    const answered = new AbortController()
    this.#beat = () => answered.abort()
    void this.send('beat')
    return systemClock.sleep(ANSWER_MS, AbortSignal.any([answered.signal, ended])).then(() => answered.signal.aborted)
  }

  #receive(payload: string): void {
    const [notification, from] = payload.split(' ')
    const isOwn = from === this.#self
    if (notification === 'beat' && isOwn) this.#beat?.()
    if (isOwn) return
    if (notification === 'work' || notification === 'earlier' || notification === 'lost')
      this.#settings.onNotification(notification)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#announcing?.()
    await this.#listening
  }
}
