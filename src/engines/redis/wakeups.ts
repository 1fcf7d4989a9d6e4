import { type Clock, systemClock, watchEvery } from '../../time/clock.ts'
import { Connection } from './connection.ts'
import type { RedisClient } from './driver.ts'

/** Redis counts from here; 0 would mean for ever. */
const WAIT_MS_MIN = 10
/** After a refusal, so that whoever asks again at once does not spin. */
const PAUSE_MS = 100

/** What BZPOPMIN took away. */
export interface Popped {
  readonly key: string
  readonly member: string
  readonly score: number
}

/** A connection of its own that waits for the first entry in one of several sorted sets. One wait at a time. */
export class BlockingConnection {
  readonly #link: Connection
  readonly #graceMs: number
  readonly #onClose: () => void
  #closed = false

  /** `graceMs`: how much later than asked for the server may answer before its connection is given up. */
  constructor(link: Connection, graceMs: number, onClose: () => void) {
    this.#link = link
    this.#graceMs = graceMs
    this.#onClose = onClose
  }

  /**
   * Null when there was none in time, on abort, after `close` and when the connection was lost: it never rejects,
   * because whoever waits for work looks for it then in any case. An abort cuts the connection, and may lose an entry
   * that is on its way at that moment.
   */
  async pop(keys: readonly string[], waitMs: number, signal: AbortSignal): Promise<Popped | null> {
    if (signal.aborted || this.#closed) return null
    const untilMs = systemClock.monotonicMs() + waitMs
    const unsent = Promise.withResolvers<null>()
    const cut = (): void => {
      // What waits at the server ends with its connection, which takes a moment; what was never sent ends at once.
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
      cancelDeadline()
      signal.removeEventListener('abort', cut)
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

/**
 * Wakes a claim that waits. BullMQ rings by putting a marker into a sorted set of the queue, whoever adds the job; one
 * BZPOPMIN over all queues hears it. It stays on its way when a claim ends, because it cannot be taken back: what it
 * brings then wakes the next claim.
 */
export class Wakeups {
  readonly #blocker: BlockingConnection
  readonly #clock: Clock
  readonly #markers: readonly string[]
  readonly #pollMs: number
  readonly #closing = new AbortController()
  #hearing: Promise<void> | null = null
  #rung = false

  constructor(blocker: BlockingConnection, clock: Clock, markers: readonly string[], pollMs: number) {
    this.#blocker = blocker
    this.#clock = clock
    this.#markers = markers
    this.#pollMs = pollMs
  }

  /** Resolves at the latest after `ms`, when somebody rings, on abort and on `close`. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung) {
      this.#hearing ??= this.#hear()
      const over = new AbortController()
      const asleep = this.#clock.sleep(ms, AbortSignal.any([signal, over.signal, this.#closing.signal]))
      await Promise.race([this.#hearing, asleep])
      over.abort()
    }
    this.#rung = false
  }

  async #hear(): Promise<void> {
    // What is lost with a connection is found by looking again, so the end of a wait rings as well.
    await this.#blocker.pop(this.#markers, this.#pollMs, this.#closing.signal)
    this.#hearing = null
    this.#rung = true
  }

  close(): void {
    this.#closing.abort()
    this.#blocker.close()
  }
}

export interface Listener {
  hear(message: string): void
  /** From here on it hears. What was said before, or while the connection was away, is lost. */
  resumed?(): void
}

/** A connection that only listens says nothing by itself, so that its end would go unnoticed. */
const CHECK_MS = 10_000

/** The connection for pub/sub. Connects with the first channel. */
export class Subscriber {
  readonly #client: RedisClient
  readonly #link: Connection
  readonly #channels = new Map<string, Set<Listener>>()
  /** Channels that this very connection hears. */
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
    // Unanswered, it makes the driver give the connection up and open another.
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

  /** Where it fails the connection is gone, and the next one subscribes again. */
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
