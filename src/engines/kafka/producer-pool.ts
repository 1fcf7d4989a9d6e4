import type { RawProducer } from './driver.ts'

/** One for what is enqueued, and some for dead letters, so that one broker that hangs does not hold up the others. */
const PRODUCERS_MAX = 4

/**
 * Producers of the client, each for one send at a time and for none after a failure. The client reads its producer id, asks
 * for metadata and then numbers the records; when another send fails meanwhile, the numbers begin anew under the old id. The
 * broker takes such records for ones that it has: it acknowledges them and does not write them.
 */
export class ProducerPool {
  readonly #create: () => RawProducer
  readonly #open = new Set<RawProducer>()
  readonly #idle: RawProducer[] = []
  readonly #waiting: ((producer: RawProducer) => void)[] = []
  /** Those that were given up are open until their send ends, and leave their place to another. */
  #places = PRODUCERS_MAX

  constructor(create: () => RawProducer) {
    this.#create = create
  }

  /** Each is to be given back, or given up. The caller that asked first gets the next. */
  take(): Promise<RawProducer> {
    const idle = this.#idle.pop()
    if (idle !== undefined) return Promise.resolve(idle)
    if (this.#places === 0) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#places -= 1
    return Promise.resolve(this.#new())
  }

  giveBack(producer: RawProducer): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push(producer)
    else next(producer)
  }

  /** Its send failed, or was not waited for any longer. */
  giveUp(producer: RawProducer, sending: Promise<unknown>): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#places += 1
    else next(this.#new())
    const close = async (): Promise<void> => {
      if (this.#open.delete(producer)) await producer.close(true).catch(() => {})
    }
    void sending.then(close, close)
  }

  async close(): Promise<void> {
    const open = [...this.#open]
    this.#open.clear()
    await Promise.all(open.map((producer) => producer.close(true)))
  }

  #new(): RawProducer {
    const producer = this.#create()
    this.#open.add(producer)
    return producer
  }
}
