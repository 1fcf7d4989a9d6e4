/**
 * Runs one Kafka broker that every test process of this machine shares, so that not every file waits for its own.
 *
 * A process that uses it holds a connection to this one, which closes with the process however it goes; it says the id
 * of its test runner in a line, and hears `ready` with the broker's port or `failed` with the reason. When nobody is
 * connected and no such runner lives, the broker ends, its data is removed, and this process ends too.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endBroker, SHARED_ADDRESS, startOnFreePorts } from './kafka-broker.ts'

const LOOK_EVERY_MS = 500
/** Nobody restarts this one, so nothing is gained if it takes itself for dead when the machine stands still for a while. */
const LASTING = 'broker.session.timeout.ms=60000'

const connected = new Set<Socket>()
const runners = new Set<number>()
const answer = Promise.withResolvers<string>()

const server = createServer((socket) => {
  connected.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => connected.delete(socket))
  const lines = createInterface({ input: socket }).on('error', () => {})
  lines.on('line', (line) => {
    if (line.startsWith('runner ')) runners.add(Number(line.slice('runner '.length)))
  })
  answer.promise.then((line) => socket.write(line))
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function share(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kafka-'))
  const leave = (): never => {
    rmSync(folder, { recursive: true, force: true })
    process.exit(0)
  }
  const broker = await startOnFreePorts(folder, { settings: [LASTING] }).then(
    (started) => {
      answer.resolve(`ready ${started.place.port}\n`)
      return started.broker
    },
    (error) => {
      answer.resolve(`failed ${String(error).replaceAll('\n', ' ')}\n`)
      return null
    },
  )
  broker?.once('exit', leave)
  const look = async (): Promise<void> => {
    for (const pid of runners) if (!isAlive(pid)) runners.delete(pid)
    // One that could not start is not kept for the files to come: they may have better luck.
    if (connected.size > 0 || (broker !== null && runners.size > 0)) {
      setTimeout(look, LOOK_EVERY_MS)
      return
    }
    server.close()
    if (broker !== null) await endBroker(broker, 'SIGKILL')
    leave()
  }
  // The parent has connected while the broker started.
  setTimeout(look, LOOK_EVERY_MS)
}

// Another process already listens: the parent connects to that one.
server.once('error', () => process.exit(0))
server.listen(SHARED_ADDRESS, share)
