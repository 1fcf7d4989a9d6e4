import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the range that systems take for outgoing connections, any of which could have the port before its server binds it. */
const [FIRST, LAST] = [15_000, 31_999]
const STARTS_MAX = 5

/** A port of loopback that nobody listens on now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer().once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

/** Starts a server on a free port, and again on another one if it fails: meanwhile a neighbour may have taken the port. */
export async function onFreePort<Server>(start: (port: number) => Promise<Server>): Promise<[Server, port: number]> {
  for (let starts = 1; ; starts += 1) {
    const port = await freePort()
    try {
      return [await start(port), port]
    } catch (error) {
      if (starts === STARTS_MAX) throw error
    }
  }
}
