import { randomBytes } from 'node:crypto'
import { backgroundClock, type Clock, sharedWait, systemClock } from '../../time/clock.ts'
import { Waiters } from '../sql/waiters.ts'
import type { Following, Queries } from './database.ts'
import type { PgClient, PgNotification } from './driver.ts'
import { NOW } from './fragments.ts'
import { type Names, quote } from './names.ts'

/** A worker's own poll of the same length comes before this one. A multiple of the usual one meets the process's other looks. */
const LATER = 1.25
/** A shorter poll is left as it is. */
const POLL_MS_MIN = 50

/**
 * Wakes callers that wait when there may be work. This process and NOTIFY call `notify`. A poll in real time covers the
 * rest, such as a row that another program inserted.
 */
export class Wakeups {
  readonly #pollMs: number
  readonly #waiters: Waiters
  #changes = 0
  #stop: (() => void) | null = null

  constructor(clock: Clock, pollMs: number) {
    this.#pollMs = pollMs
    this.#waiters = new Waiters(clock, () => this.#tune())
  }

  /** Read it before looking at the database, and pass it to `wait`: a change in between is then not missed. */
  get changes(): number {
    return this.#changes
  }

  notify(): void {
    this.#changes += 1
    this.#waiters.wake()
  }

  /** Resolves on a change since `seen`, at the next poll, after `ms` of the injected clock, or when `signal` aborts. */
  wait(ms: number, { seen, signal }: { readonly seen: number; readonly signal: AbortSignal }): Promise<void> {
    return seen === this.#changes ? this.#waiters.wait(ms, signal) : Promise.resolve()
  }

  close(): void {
    this.#changes += 1
    this.#waiters.close()
  }

  /** The timer runs only while a caller waits. */
  #tune(): void {
    if (this.#waiters.isEmpty) {
      this.#stop?.()
      this.#stop = null
      return
    }
    this.#stop ??= backgroundClock.after(this.#nextInMs(), () => {
      this.#stop = null
      this.#waiters.wake()
    })
  }

  /** Processes do not ask at once, because each counts from its own start. */
  #nextInMs(): number {
    const everyMs = this.#pollMs * LATER
    return everyMs < POLL_MS_MIN ? everyMs : Math.max(1, sharedWait(systemClock, everyMs, everyMs))
  }
}

export const NOTIFY = (): string => `SELECT pg_notify($2, $3) WHERE ${NOW} IS NOT NULL`

/**
 * `work`: new jobs. `earlier`: jobs that may come before those claimed last. `lost`: a lease was taken away. `beat`: a
 * process checks its own listening connection.
 */
export type Notification = 'work' | 'earlier' | 'lost' | 'beat'

/** A connection that stays open for LISTEN. */
export interface ListenConnection {
  readonly client: PgClient
  close(): Promise<void>
}

/** New work is announced at most this often on average: every NOTIFY takes a lock of the whole server when it commits. */
const ANNOUNCE_MS = 4
/** A process that announced nothing for a while may announce this long as often as it likes. */
const UNUSED_MS_MAX = 100
/** How often the way from another connection to the listening one is checked, and how long that may take. */
const BEAT_MS = 15_000
const ANSWER_MS = 5_000
const RETRY_MS_MIN = 100
const RETRY_MS_MAX = 30_000

interface ChannelSettings {
  readonly queries: Queries
  readonly names: Names
  /** Null where no connection can listen. */
  readonly connect: (() => Promise<ListenConnection>) | null
  onNotification(notification: Notification): void
  /** Notifications are heard from now on, or no longer. */
  onListening?(isListening: boolean): void
}

/**
 * Sends and receives notifications between the processes of one schema. It only saves time: waiting callers also poll.
 *
 * A connection can be open and receive nothing, because a pooler reassigned it or a proxy dropped it. So a beat is sent
 * through another connection and must arrive through this one; if it does not, a new connection is made.
 */
export class NotifyChannel {
  readonly #settings: ChannelSettings
  /** Tells our own notifications apart: the server sends them back to us. */
  readonly #self = randomBytes(6).toString('base64url')
  readonly #closing = new AbortController()
  #announcedAtMs = Number.NEGATIVE_INFINITY
  #announcing: (() => void) | null = null
  #onBeat: (() => void) | null = null
  #listening: Promise<void> | null = null
  #isListening = false
  #isEarlier = false

  constructor(settings: ChannelSettings) {
    this.#settings = settings
  }

  /** Whether the last beat arrived. */
  get isListening(): boolean {
    return this.#isListening
  }

  /** Listens from now on. Nothing happens if it does already. */
  start(): void {
    const { connect } = this.#settings
    if (connect !== null && !this.#closing.signal.aborted) this.#listening ??= this.#keepListening(connect)
  }

  /** There may be work. Sent at once, or as soon as the rate allows; the last one is never left out. */
  announce(notification: 'work' | 'earlier'): void {
    if (notification === 'earlier') this.#isEarlier = true
    if (this.#announcing !== null || this.#closing.signal.aborted) return
    if (this.#leftMs <= 0) {
      void this.#announceNow()
      return
    }
    this.#announcing = systemClock.after(this.#leftMs, () => {
      this.#announcing = null
      void this.#announceNow()
    })
  }

  /**
   * The statement that announces work, for a caller that sends it behind the one that adds the work. Null where the rate
   * does not allow it now: `announce` it then.
   */
  announcement(notification: 'work' | 'earlier'): Following | null {
    if (this.#announcing !== null || this.#closing.signal.aborted || this.#leftMs > 0) return null
    this.#countAnnouncement()
    return this.#statementOf(notification)
  }

  get #leftMs(): number {
    return this.#announcedAtMs + ANNOUNCE_MS - systemClock.monotonicMs()
  }

  #countAnnouncement(): void {
    this.#announcedAtMs = Math.max(this.#announcedAtMs + ANNOUNCE_MS, systemClock.monotonicMs() - UNUSED_MS_MAX)
  }

  #announceNow(): Promise<void> {
    this.#countAnnouncement()
    const notification = this.#isEarlier ? 'earlier' : 'work'
    this.#isEarlier = false
    return this.send(notification)
  }

  #statementOf(notification: Notification): Following {
    return { statement: NOTIFY, values: [this.#settings.names.channel, `${notification} ${this.#self}`] }
  }

  /** A failure is harmless: the other processes poll. */
  async send(notification: Notification): Promise<void> {
    const { statement, values } = this.#statementOf(notification)
    await this.#settings.queries.rows(statement, ...values).catch(() => {})
  }

  /** Sent when the caller's transaction commits. */
  async sendWithin(queries: Queries): Promise<void> {
    await queries.rows(NOTIFY, this.#settings.names.channel, 'earlier')
  }

  async #keepListening(connect: () => Promise<ListenConnection>): Promise<void> {
    let waitMs = RETRY_MS_MIN
    while (!this.#closing.signal.aborted) {
      const wasListening = await this.#listen(connect).catch(() => false)
      this.#listens(false)
      if (this.#closing.signal.aborted) return
      waitMs = wasListening ? RETRY_MS_MIN : Math.min(waitMs * 2, RETRY_MS_MAX)
      await systemClock.sleep(waitMs * (0.5 + Math.random()), this.#closing.signal)
    }
  }

  /** Resolves when the connection is gone or receives nothing. True if a beat ever arrived. */
  async #listen(connect: () => Promise<ListenConnection>): Promise<boolean> {
    const { names } = this.#settings
    const connection = await connect()
    const { client } = connection
    const gone = new AbortController()
    const end = (): void => gone.abort()
    const receive = (notification: PgNotification): void => {
      if (notification.channel === names.channel) this.#receive(notification.payload ?? '')
    }
    client.on('notification', receive)
    client.on('end', end)
    client.on('error', end)
    try {
      await client.query({ text: `LISTEN ${quote(names.channel)}`, values: [], query_timeout: ANSWER_MS })
      const ended = AbortSignal.any([gone.signal, this.#closing.signal])
      let wasListening = false
      while (!ended.aborted) {
        if (!(await this.#isAnswered(ended))) break
        wasListening = true
        this.#listens(true)
        await systemClock.sleep(sharedWait(systemClock, BEAT_MS), ended)
      }
      return wasListening
    } finally {
      client.removeListener('notification', receive)
      client.removeListener('end', end)
      await connection.close().catch(() => {})
    }
  }

  #listens(isListening: boolean): void {
    if (this.#isListening === isListening) return
    this.#isListening = isListening
    this.#settings.onListening?.(isListening)
    if (!isListening) return
    // Notifications sent before were missed.
    this.#settings.onNotification('earlier')
    this.#settings.onNotification('lost')
  }

  #isAnswered(ended: AbortSignal): Promise<boolean> {
    const answered = new AbortController()
    this.#onBeat = () => answered.abort()
    void this.send('beat')
    return systemClock.sleep(ANSWER_MS, AbortSignal.any([answered.signal, ended])).then(() => answered.signal.aborted)
  }

  #receive(payload: string): void {
    const [notification, from] = payload.split(' ')
    const isOwn = from === this.#self
    if (notification === 'beat' && isOwn) this.#onBeat?.()
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
