import { ClosedError } from '../../errors.ts'
import { backgroundClock, systemClock } from '../../time/clock.ts'
import { AnswerWatch, type SentCall } from './answer-watch.ts'
import type { RedisClient, RedisValue } from './driver.ts'
import { isElsewhere, isNotSent, isNotYet, isTimedOut, notConnected, timedOut } from './faults.ts'

/** Wait after a refusal that passes by itself, or that another connection may not meet. */
const AGAIN_MS = 50
/** ioredis gives up for good when a connection is cut during its DNS lookup. */
const REVIVE_MS = 500

/**
 * One connection that always reconnects. A call waits for it until its deadline and is then refused. A command is never
 * sent twice, unless the server said that it did nothing.
 */
export class Connection {
  readonly #client: RedisClient
  readonly #waitMs: number
  readonly #waiting = new Set<() => void>()
  readonly #watch: AnswerWatch | null
  #greeting: SentCall | null = null
  #lastError: Error | null = null
  /** Counts the connections: a timeout on one says nothing about the next. */
  #connection = 0
  #closed = false

  /**
   * `waitMs`: how long a call may wait before it is sent. `answerMs`: how long its answer may take; null where the driver
   * sees to that, or the call blocks.
   */
  constructor(client: RedisClient, waitMs: number, answerMs: number | null = null) {
    this.#client = client
    this.#waitMs = waitMs
    this.#watch = answerMs === null ? null : new AnswerWatch(answerMs, () => this.#late())
    // Without a listener the driver writes to the console, or the process ends.
    client.on('error', (error) => {
      this.#lastError = error
    })
    client.on('connect', () => {
      this.#greeting ??= this.#watch?.begin() ?? null
    })
    client.on('close', () => this.#greeted())
    client.on('ready', () => {
      this.#greeted()
      this.#lastError = null
      this.#connection += 1
      this.#wake()
    })
    client.on('end', () => this.#revive())
  }

  /** Changes with every connection. What one has written, another cannot wait for. */
  get epoch(): number {
    return this.#connection
  }

  get isReady(): boolean {
    return this.#client.status === 'ready'
  }

  /** One attempt, for opening: a wrong address is reported at once. A server that is loading its data is waited for. */
  async connect(withinMs: number): Promise<void> {
    const over = new AbortController()
    const late = systemClock.sleep(withinMs, over.signal).then(() => {
      if (!over.signal.aborted) throw notConnected(this.#lastError, withinMs)
    })
    const connected = this.#client.connect()
    connected.catch(() => {})
    try {
      await Promise.race([connected, late])
    } catch (error) {
      throw this.#lastError ?? error
    } finally {
      over.abort()
    }
  }

  /** Sends a command once connected. Rejects with the driver's error, or with a coded one when nothing was sent. */
  async send(command: string, args: readonly RedisValue[], waitMs = this.#waitMs): Promise<unknown> {
    const untilMs = systemClock.monotonicMs() + waitMs
    let refusal: unknown = null
    for (;;) {
      // The server's refusal says more than the fact that the connection is not back yet.
      if (!this.isReady) await this.#ready(untilMs, waitMs).catch((error: unknown) => Promise.reject(refusal ?? error))
      const connection = this.#connection
      const sent = this.#watch?.begin()
      try {
        const answer = await this.#client.call(command, args)
        if (sent !== undefined) this.#watch?.end(sent)
        return answer
      } catch (error) {
        if (sent !== undefined) this.#watch?.end(sent)
        if (sent?.isLate === true) throw timedOut()
        if (isTimedOut(error) && connection === this.#connection && this.isReady) this.reset()
        const left = untilMs - systemClock.monotonicMs()
        if (left <= 0 || this.#closed || !(isNotSent(error) || isElsewhere(error) || isNotYet(error))) throw error
        if (!isNotSent(error)) refusal = error
        await systemClock.sleep(Math.min(left, AGAIN_MS))
      }
    }
  }

  /** What the driver asks a new connection is answered. */
  #greeted(): void {
    if (this.#greeting !== null) this.#watch?.end(this.#greeting)
    this.#greeting = null
  }

  /** The connection is silent: later commands on it would wait as long. */
  #late(): void {
    if (this.#greeting?.isLate === true) this.#lastError = timedOut()
    this.reset()
  }

  /** Resolves when commands can be sent. */
  async #ready(untilMs: number, waitMs: number): Promise<void> {
    this.start()
    while (!this.isReady) {
      if (this.#closed) throw new ClosedError('this Redis engine')
      const left = untilMs - systemClock.monotonicMs()
      if (left <= 0) throw notConnected(this.#lastError, waitMs)
      const woken = new AbortController()
      const wake = (): void => woken.abort()
      this.#waiting.add(wake)
      await systemClock.sleep(left, woken.signal)
      this.#waiting.delete(wake)
    }
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake()
  }

  /** Connects in the background, unless it already does. */
  start(): void {
    if (!this.#closed && this.#client.status === 'wait') this.#client.connect().catch(() => {})
  }

  #revive(): void {
    if (this.#closed) return
    backgroundClock.after(REVIVE_MS, () => {
      if (!this.#closed && this.#client.status === 'end') this.#client.connect().catch(() => {})
    })
  }

  /** Cuts the connection and opens another. */
  reset(): void {
    if (!this.#closed) this.#client.disconnect(true)
  }

  /** Rejects unanswered commands and closes the socket at once. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#watch?.close()
    this.#client.disconnect()
    this.#wake()
  }
}
