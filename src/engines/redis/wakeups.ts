import { type Clock, sharedWait, systemClock, watchEvery } from '../../time/clock.ts'
import { Connection } from './connection.ts'
import type { RedisClient } from './driver.ts'

/** The shortest wait that Redis accepts; 0 would mean for ever. */
const WAIT_MS_MIN = 10
/** Pause after a refusal, so that a caller that retries at once does not spin. */
const PAUSE_MS = 100

/** What BZPOPMIN removed. */
export interface Popped {
  readonly key: string
  readonly member: string
  readonly score: number
}

/** A separate connection that waits for the first entry in one of several sorted sets. One wait at a time. */
export class BlockingConnection {
  readonly #link: Connection
  readonly #graceMs: number
  readonly #onClose: () => void
  #closed = false

  /** `graceMs`: how late the server may answer before the connection is given up. */
  constructor(link: Connection, graceMs: number, onClose: () => void) {
    this.#link = link
    this.#graceMs = graceMs
    this.#onClose = onClose
  }

  /**
   * Null on timeout, on abort, after `close` and when the connection is lost. Never rejects: the caller looks for work in
   * any case. An abort cuts the connection, and may lose an entry that is on its way.
   */
  async pop(keys: readonly string[], waitMs: number, signal: AbortSignal): Promise<Popped | null> {
    if (signal.aborted || this.#closed) return null
    const untilMs = systemClock.monotonicMs() + waitMs
    const unsent = Promise.withResolvers<null>()
    const cut = (): void => {
      // A wait at the server ends with its connection, which takes a moment; an unsent one ends at once.
      if (!this.#link.isReady) unsent.resolve(null)
      this.#link.reset()
    }
    const cancelDeadline = systemClock.after(waitMs + this.#graceMs, cut)
    signal.addEventListener('abort', cut, { once: true })
    try {
      const seconds = Math.max(waitMs, WAIT_MS_MIN) / 1_000
      const sent = this.#link.send('bzpopmin', [...keys, seconds], waitMs)
      return toPopped(await Promise.race([sent, unsent.promise]))
    } catch {
      const left = Math.max(0, untilMs - systemClock.monotonicMs())
      if (!this.#closed) await systemClock.sleep(Math.min(left, PAUSE_MS), signal)
      return null
    } finally {
      // Later: a job may wait, and both take as long as asking for it.
      setImmediate(() => {
        cancelDeadline()
        signal.removeEventListener('abort', cut)
      })
    }
  }

  close(): void {
    this.#closed = true
    this.#link.close()
    this.#onClose()
  }
}

function toPopped(answer: unknown): Popped | null {
  if (!Array.isArray(answer)) return null
  const [key, member, score] = answer
  return { key: String(key), member: String(member), score: Number(score) }
}

interface WakeupSettings {
  /** The sorted sets of the queues. */
  readonly markers: readonly string[]
  readonly pollMs: number
  readonly putBack: (marker: Popped) => void
}

/**
 * Wakes waiting claims. Every producer of BullMQ adds a marker to a sorted set of the queue; one BZPOPMIN over all queues
 * waits for it. It cannot be withdrawn when a claim ends, so its result wakes the next claim.
 */
export class Wakeups {
  readonly #connection: BlockingConnection
  readonly #clock: Clock
  readonly #markers: readonly string[]
  readonly #pollMs: number
  readonly #putBack: (marker: Popped) => void
  readonly #closing = new AbortController()
  #hearing: Promise<void> | null = null
  #rung = false
  #waiting = 0

  /** `putBack` gets a marker that nobody here waited for: another process may. */
  constructor(connection: BlockingConnection, clock: Clock, { markers, pollMs, putBack }: WakeupSettings) {
    this.#connection = connection
    this.#clock = clock
    this.#markers = markers
    this.#pollMs = pollMs
    this.#putBack = putBack
  }

  /** Whether no marker was heard since the last `wait` ended. */
  get isQuiet(): boolean {
    return !this.#rung
  }

  /** For a caller that is about to look: it finds what was announced up to now. */
  forget(): void {
    this.#rung = false
  }

  /** Hears markers from now on. One that comes before the next `wait` is put back. */
  begin(): void {
    if (!this.#rung) this.#hearing ??= this.#hear()
  }

  /** Resolves on a marker, after `ms`, on abort and on `close`. Never rejects. True if there may be work now. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    this.begin()
    if (!this.#rung) {
      this.#waiting += 1
      const { promise: over, resolve: end } = Promise.withResolvers<void>()
      if (signal.aborted) end()
      const finish = (): void => end()
      signal.addEventListener('abort', finish, { once: true })
      const cancel = this.#clock.after(ms, end)
      // `close` ends what is heard.
      await Promise.race([this.#hearing, over])
      this.#waiting -= 1
      // Later: a job waits, and ending the timer takes as long as asking for it.
      setImmediate(() => {
        signal.removeEventListener('abort', finish)
        cancel()
      })
    }
    const isRung = this.#rung
    this.#rung = false
    return isRung
  }

  async #hear(): Promise<void> {
    // A marker lost with a connection is made up for by looking again, so the end of a wait counts as a wake-up.
    const waitMs = sharedWait(systemClock, this.#pollMs)
    const marker = await this.#connection.pop(this.#markers, waitMs, this.#closing.signal)
    this.#hearing = null
    this.#rung = true
    if (marker !== null && this.#waiting === 0) this.#putBack(marker)
  }

  close(): void {
    this.#closing.abort()
    this.#connection.close()
  }
}

export interface Listener {
  hear(message: string): void
  /** Messages arrive from now on. Earlier ones, and those during an outage, are lost. */
  resumed?(): void
}

/** A connection that only listens sends nothing, so a broken one would go unnoticed. */
const CHECK_MS = 10_000

/** The connection for pub/sub. Connects with the first channel. */
export class Subscriber {
  readonly #client: RedisClient
  readonly #link: Connection
  readonly #channels = new Map<string, Set<Listener>>()
  /** Channels that the current connection is subscribed to. */
  readonly #heard = new Set<string>()
  readonly #stopChecks: () => void

  constructor(client: RedisClient, answerMs: number) {
    this.#client = client
    this.#link = new Connection(client, answerMs)
    client.on('message', (channel, message) => {
      for (const listener of [...(this.#channels.get(channel) ?? [])]) listener.hear(message)
    })
    client.on('close', () => this.#heard.clear())
    client.on('ready', () => {
      for (const channel of this.#channels.keys()) this.#subscribe(channel)
    })
    // If it is not answered, the driver opens another connection.
    this.#stopChecks = watchEvery(CHECK_MS, () => {
      if (this.#link.isReady) client.call('ping', []).catch(() => {})
    })
  }

  /** Returns the function that stops listening. */
  listen(channel: string, listener: Listener): () => void {
    const listeners = this.#channels.get(channel) ?? new Set()
    const isNew = listeners.size === 0
    listeners.add(listener)
    this.#channels.set(channel, listeners)
    this.#link.start()
    if (this.#heard.has(channel)) listener.resumed?.()
    else if (this.#link.isReady && isNew) this.#subscribe(channel)
    return () => {
      listeners.delete(listener)
      if (listeners.size > 0 || this.#channels.get(channel) !== listeners) return
      this.#channels.delete(channel)
      this.#heard.delete(channel)
      if (this.#link.isReady) this.#client.call('unsubscribe', [channel]).catch(() => {})
    }
  }

  /** If it fails, the connection is gone, and the next one subscribes again. */
  #subscribe(channel: string): void {
    this.#client.call('subscribe', [channel]).then(
      () => {
        const listeners = this.#channels.get(channel)
        if (listeners === undefined) return
        this.#heard.add(channel)
        for (const listener of [...listeners]) listener.resumed?.()
      },
      () => {},
    )
  }

  close(): void {
    this.#stopChecks()
    this.#channels.clear()
    this.#link.close()
  }
}
