import { watchEvery } from '../../time/clock.ts'
import type { RedisClient } from './driver.ts'
import { Link } from './link.ts'

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
  readonly #link: Link
  readonly #channels = new Map<string, Set<Listener>>()
  /** Channels that this very connection hears. */
  readonly #heard = new Set<string>()
  readonly #stopChecks: () => void

  constructor(client: RedisClient, answerMs: number) {
    this.#client = client
    this.#link = new Link(client, answerMs)
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
