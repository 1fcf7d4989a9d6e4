import type { Socket } from 'node:net'
import { systemClock } from '../../src/time/clock.ts'
import type { Direction } from './scene.ts'

type Way = Exclude<Direction, 'both'>

/** What a wire does to its connections; a new one begins with what holds at that moment. */
export interface Condition {
  readonly silent: ReadonlySet<Way>
  readonly lateMs: Readonly<Record<Way, number>>
  /** After so many more bytes from the server it is reset; null: never. */
  readonly bytesLeft: number | null
}

/** What becomes of bytes from the client. */
export type Treatment = 'pass' | 'reset' | 'silence' | 'pass-then-silence'

/** One connection of a client to a server, and what is done to what it carries. */
export class WiredConnection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #lanes: Readonly<Record<Way, Lane>> = { 'to-server': new Lane(), 'to-client': new Lane() }
  #silent: ReadonlySet<Way> = new Set()
  #bytesLeft: number | null = null

  constructor(client: Socket, server: Socket, treat: (bytes: Buffer) => Treatment) {
    this.#client = client
    this.#server = server
    client
      .on('error', () => {})
      .on('data', (bytes) => {
        if (!this.#silent.has('to-server')) this.#send(bytes, treat(bytes))
      })
    server.on('data', (bytes) => this.#answer(bytes)).on('error', () => {})
    client.on('end', () => this.#pass('to-server', () => server.end()))
    server.on('end', () => this.#pass('to-client', () => client.end()))
    client.on('close', () => this.#pass('to-server', () => server.destroy()))
    server.on('close', () => this.#pass('to-client', () => client.destroy()))
  }

  get isSilent(): boolean {
    return this.#silent.size > 0
  }

  set condition({ silent, lateMs, bytesLeft }: Condition) {
    this.#silent = silent
    this.#bytesLeft = bytesLeft
    for (const way of WAYS) this.#lanes[way].lateMs = lateMs[way]
  }

  /** Both ends see a reset. */
  reset(): void {
    this.#client.resetAndDestroy()
    this.#server.resetAndDestroy()
  }

  onClosed(run: () => void): void {
    const ended = (): void => void (this.#client.closed && this.#server.closed && run())
    for (const socket of [this.#client, this.#server]) socket.on('close', ended)
  }

  #send(bytes: Buffer, treatment: Treatment): void {
    switch (treatment) {
      case 'reset':
        this.reset()
        return
      case 'silence':
        this.#silent = BOTH
        return
      case 'pass':
        this.#pass('to-server', () => this.#server.write(bytes))
        return
      case 'pass-then-silence':
        this.#server.write(bytes)
        this.#silent = BOTH
        return
      default:
        treatment satisfies never
    }
  }

  #answer(bytes: Buffer): void {
    this.#pass('to-client', () => {
      if (this.#bytesLeft === null) {
        this.#client.write(bytes)
        return
      }
      const part = bytes.subarray(0, this.#bytesLeft)
      this.#bytesLeft -= part.length
      // What is left of the answer arrives first, so that the client may see a torn one.
      if (this.#bytesLeft > 0) this.#client.write(part)
      else this.#client.write(part, () => this.reset())
    })
  }

  /** The silence is looked at when the bytes are due, so that nothing passes that was under way when it began. */
  #pass(way: Way, act: () => unknown): void {
    this.#lanes[way].add(() => {
      if (!this.#silent.has(way)) act()
    })
  }
}

const WAYS = ['to-server', 'to-client'] as const
const BOTH: ReadonlySet<Way> = new Set(WAYS)

/** Acts of one direction, each carried out late and all in their order. */
class Lane {
  lateMs = 0
  #last: Promise<void> = Promise.resolve()
  #waiting = 0

  add(act: () => void): void {
    if (this.lateMs === 0 && this.#waiting === 0) {
      act()
      return
    }
    const dueMs = systemClock.monotonicMs() + this.lateMs
    this.#waiting += 1
    this.#last = this.#last.then(async () => {
      // Mended meanwhile: nothing is held back any longer.
      if (this.lateMs > 0) await systemClock.sleep(dueMs - systemClock.monotonicMs())
      this.#waiting -= 1
      act()
    })
  }
}
