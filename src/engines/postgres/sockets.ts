import { Socket } from 'node:net'
import { systemClock } from '../../time/clock.ts'

/** A server that is there takes leave at once. */
const GOODBYE_MS = 1_000

/**
 * The sockets under connections of our own. The driver waits without end for the goodbye of a server that is gone in
 * silence, and such a socket keeps the process alive; here it can be cut off.
 */
export class Sockets {
  readonly #open = new Set<Socket>()

  /** What the driver opens a connection with. */
  readonly create = (): Socket => {
    const socket = new Socket()
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    return socket
  }

  /** Resolves when the driver has ended, and cuts off what does not let it. */
  async ended(driver: Promise<unknown>): Promise<void> {
    const over = new AbortController()
    const end = driver.finally(() => over.abort())
    await Promise.race([end, systemClock.sleep(GOODBYE_MS, over.signal)])
    for (const socket of this.#open) socket.destroy()
    await end
  }
}
