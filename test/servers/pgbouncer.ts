/** Debian's PgBouncer in transaction mode in front of a server, on loopback only. */
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram } from './apt.ts'
import { freePort } from './free-port.ts'

export interface Pgbouncer {
  /** The given URL through the pooler. */
  through(url: string): string
  /** Connections to the server at most, over all clients. */
  readonly serverConnections: number
  stop(): Promise<void>
}

/** It refuses to run as root; on Linux nobody always exists. */
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const SERVER_CONNECTIONS = 3

export const MISSING = `pgbouncer is not installed; run 'apt-get install pgbouncer' to test behind a transaction pooler`

/** Where the program is. Where it is missing and may be installed, it is installed; null where it may not. */
export function findPgbouncer(): string | null {
  return findProgram('pgbouncer', 'pgbouncer')
}

export async function startPgbouncer(program: string, serverUrl: string): Promise<Pgbouncer> {
  const server = new URL(serverUrl)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pgbouncer-'))
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, settings(server, port))
  if (isRoot) {
    chmodSync(folder, 0o700)
    for (const path of [folder, file]) chownSync(path, NOBODY, NOBODY)
  }
  // Its standard input closes when this process ends, however that happens, and it goes too.
  const keeper = spawn('/bin/sh', ['-c', `"$0" -q "$1" & cat > /dev/null; kill $!; wait`, program, file], {
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
    cwd: folder,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const gone = new Promise<void>((resolve) => keeper.once('exit', () => resolve()))
  await listening(port)
  return {
    serverConnections: SERVER_CONNECTIONS,
    through(url) {
      const through = new URL(url)
      through.port = String(port)
      return through.href
    },
    async stop() {
      keeper.stdin.end()
      await gone
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function settings(server: URL, port: number): string {
  return `[databases]
* = host=${server.hostname} port=${server.port || 5432} user=${server.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${SERVER_CONNECTIONS}
max_client_conn = 200
`
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 6_000; tries += 1) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    await sleep(10)
  }
  throw new Error('pgbouncer did not start')
}
