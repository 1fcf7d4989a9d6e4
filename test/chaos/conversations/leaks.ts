/**
 * Personal data and secrets of every kind go through the real hook and the whole pipeline, while hooks and workers are killed, the
 * database is locked and the model answers nonsense. Afterwards every file is searched: none of the raw strings may be found.
 * `node test/chaos/conversations/leaks.ts` runs the full minute; the test suite runs a short one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { buildHook } from '../../../scripts/hook.ts'
import { seededRandom } from '../../../src/testing/open-for-test.ts'
import { startModelServer } from './model-server.ts'
import { type Planted, plantSecrets } from './secrets.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface LeaksOptions {
  readonly seed: number
  readonly perKind: number
  /** How many worker processes are killed. */
  readonly kills: number
  /** How long the surviving workers may take for what is left. */
  readonly finishMs: number
}

export interface LeaksReport {
  readonly prompts: number
  readonly kinds: number
  readonly workersKilled: number
  readonly hooksKilled: number
  readonly spooled: number
  readonly messages: number
  readonly learnings: number
  readonly deadLetters: number
  readonly replayed: number
  readonly answers: Readonly<Record<string, number>>
  readonly bytesSearched: number
  /** Kind and file of every raw string that was found. */
  readonly leaks: readonly string[]
  /** Messages that were neither validated nor extracted in time. */
  readonly unfinished: number
}

interface Place {
  readonly folder: string
  readonly file: string
  readonly environment: NodeJS.ProcessEnv
}

export async function runLeaks(options: LeaksOptions): Promise<LeaksReport> {
  // A stream of random numbers for each: what one draws must not depend on how fast the others are.
  const [secretsRandom, modelRandom, hooksRandom, killsRandom] = streams(options.seed)
  const place = preparePlace()
  const hook = await buildHook(path.join(place.folder, 'millrace-hook.cjs'))
  const server = await startModelServer(modelRandom)
  writeFileSync(
    path.join(place.folder, 'config.json'),
    JSON.stringify({ model: { kind: 'openai', url: server.url, model: 'test' }, extract: { minConfidence: 0 } }),
  )
  const workers = new Workers(place)
  try {
    const planted = plantSecrets(secretsRandom, options.perKind)
    workers.start()
    workers.start()
    const [hooks, workersKilled] = await Promise.all([
      sendAll(place, hook, planted, hooksRandom),
      workers.killSome(options.kills, killsRandom),
    ])
    await until(() => count(place.file, DEAD) > 0 || isDone(place), options.finishMs)
    server.calm()
    const deadLetters = await finish(place, options.finishMs)
    const replayed = await replay(place)
    await finish(place, options.finishMs)
    await workers.stop()
    const searched = search(place.folder, planted, server.received)
    return {
      prompts: planted.length,
      kinds: new Set(planted.map(({ kind }) => kind)).size,
      workersKilled,
      ...hooks,
      ...countRows(place.file),
      deadLetters,
      replayed,
      answers: server.answers,
      ...searched,
    }
  } finally {
    workers.kill()
    await server.close()
    rmSync(place.folder, { recursive: true, force: true })
  }
}

function streams(seed: number) {
  const stream = (index: number): (() => number) => seededRandom(seed + index * 0x9e3779b1)
  return [stream(0), stream(1), stream(2), stream(3)] as const
}

function preparePlace(): Place {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-leaks-'))
  const home = path.join(folder, 'home')
  mkdirSync(home)
  const { PATH } = process.env
  return { folder, file: path.join(folder, 'conversations.db'), environment: { PATH, HOME: home } }
}

/** Each prompt is a conversation of its own. Some hooks are killed, and some meet a locked database. */
async function sendAll(place: Place, hook: string, planted: readonly Planted[], random: () => number) {
  let [hooksKilled, spooled] = [0, 0]
  for (const [index, { prompt }] of planted.entries()) {
    const locked = index % 12 === 5 ? lock(place.file) : null
    const killAfterMs = random() < 0.15 ? random() * 80 : null
    const said = await runHook(place, hook, { session: `session-${index}`, prompt, killAfterMs })
    locked?.close()
    if (said === null) hooksKilled += 1
    else if (said.includes('spool')) spooled += 1
  }
  return { hooksKilled, spooled }
}

function lock(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  database.exec('BEGIN IMMEDIATE')
  return database
}

interface HookRun {
  readonly session: string
  readonly prompt: string
  readonly killAfterMs: number | null
}

/** What it said on standard error, or null if it was killed. Everything is kept in a file, to be searched. */
function runHook({ folder, file, environment }: Place, hook: string, run: HookRun): Promise<string | null> {
  const child = spawn(process.execPath, [hook, '--engine', `sqlite:${file}`], { env: environment })
  const said: Buffer[] = []
  child.stdout.on('data', (piece: Buffer) => said.push(piece))
  child.stderr.on('data', (piece: Buffer) => said.push(piece))
  child.stdin.on('error', () => {})
  child.stdin.end(JSON.stringify({ hook_event_name: 'UserPromptSubmit', session_id: run.session, prompt: run.prompt }))
  const timer = run.killAfterMs === null ? null : setTimeout(() => child.kill('SIGKILL'), run.killAfterMs)
  return new Promise((resolve, reject) => {
    child.on('close', (code, signal) => {
      if (timer !== null) clearTimeout(timer)
      const text = Buffer.concat(said).toString()
      writeFileSync(path.join(folder, 'hooks.log'), text, { flag: 'a' })
      if (signal === 'SIGKILL') resolve(null)
      else if (code === 0) resolve(text)
      else reject(new Error(`the hook ended with ${code}: ${text}`))
    })
  })
}

/** Worker processes as a user starts them. Their output goes into files, to be searched. */
class Workers {
  readonly #place: Place
  readonly #running = new Set<ChildProcess>()
  #isStopping = false

  constructor(place: Place) {
    this.#place = place
  }

  start(): void {
    const { folder, file, environment } = this.#place
    const options = ['--engine', `sqlite:${file}`, '--config', path.join(folder, 'config.json'), '--log-level', 'debug']
    const args = [path.join(ROOT, 'bin/millrace.ts'), 'start', '--preset', 'conversations', '--no-http', ...options]
    const child = spawn(process.execPath, args, { env: environment })
    const keep = (piece: Buffer): void => writeFileSync(path.join(folder, 'workers.log'), piece, { flag: 'a' })
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    this.#running.add(child)
    child.on('close', () => {
      this.#running.delete(child)
      if (!this.#isStopping) this.start()
    })
  }

  /** Each takes the place of a killed one. */
  async killSome(kills: number, random: () => number): Promise<number> {
    for (let killed = 0; killed < kills; killed += 1) {
      await sleep(1_500 + random() * 2_000)
      const running = [...this.#running]
      running[Math.floor(random() * running.length)]?.kill('SIGKILL')
    }
    return kills
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const ended = [...this.#running].map((child) => new Promise((resolve) => child.once('close', resolve)))
    for (const child of this.#running) child.kill('SIGTERM')
    await Promise.all(ended)
  }

  kill(): void {
    this.#isStopping = true
    for (const child of this.#running) child.kill('SIGKILL')
  }
}

const COUNTS = `
SELECT (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM learnings) AS learnings,
  (SELECT count(*) FROM conversations
    WHERE json_extract(metadata, '$.ai_validation_completed') IS NOT 1
    OR json_extract(metadata, '$.extracted_seq') IS NULL) AS unfinished`
const OPEN = `SELECT count(*) AS count FROM job_queue WHERE status IN ('queued', 'in_progress')`
const DEAD = `SELECT count(*) AS count, group_concat(id, ' ') AS ids FROM job_queue WHERE status = 'dead_letter'`

function countRows(file: string) {
  const row = read(file, COUNTS)
  return { messages: Number(row.messages), learnings: Number(row.learnings), unfinished: Number(row.unfinished) }
}

function read(file: string, sql: string): Record<string, unknown> {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  try {
    return database.prepare(sql).get() ?? {}
  } finally {
    database.close()
  }
}

function count(file: string, sql: string): number {
  return Number(read(file, sql).count)
}

function isDone({ folder, file }: Place): boolean {
  return globSync('**/*.spool/*.json', { cwd: folder }).length === 0 && count(file, OPEN) === 0
}

async function until(isTrue: () => boolean, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs
  while (!isTrue() && performance.now() < untilMs) await sleep(100)
}

/** Until the spool is empty and no job is left. Returns how many dead letters there are. */
async function finish(place: Place, finishMs: number): Promise<number> {
  await until(() => isDone(place), finishMs)
  return count(place.file, DEAD)
}

/** Through the command line, so that there is an audit to search. */
async function replay({ folder, file, environment }: Place): Promise<number> {
  const { count: before, ids } = read(file, DEAD)
  if (ids === null) return 0
  const args = [
    'dead',
    'replay',
    ...String(ids).split(' '),
    '--reason',
    'the model is back',
    '--engine',
    `sqlite:${file}`,
  ]
  const child = spawn(process.execPath, [path.join(ROOT, 'bin/millrace.ts'), ...args], { env: environment })
  const keep = (piece: Buffer): void => writeFileSync(path.join(folder, 'replay.log'), piece, { flag: 'a' })
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  await new Promise((resolve) => child.once('close', resolve))
  return Number(before) - count(file, DEAD)
}

/** Every file byte by byte, and what the model was sent, also without characters that only hide. */
function search(folder: string, planted: readonly Planted[], received: readonly string[]) {
  const files = globSync('**/*', { cwd: folder }).filter((name) => statSync(path.join(folder, name)).isFile())
  const texts = files
    .filter((name) => name !== 'millrace-hook.cjs')
    .map((name) => ({ name, text: plain(readFileSync(path.join(folder, name))) }))
  texts.push({ name: 'what the model was sent', text: plain(Buffer.from(received.join('\n'))) })
  const known = texts.some(({ name, text }) => name.startsWith('conversations.db') && text.includes('the proxy closes'))
  if (!known) throw new Error('the search finds nothing: not even what the database must contain')
  const leaks = texts.flatMap(({ name, text }) =>
    planted.flatMap(({ kind, raw }) => (raw.some((one) => text.includes(one)) ? [`${kind} in ${name}`] : [])),
  )
  return { leaks, bytesSearched: texts.reduce((sum, { text }) => sum + text.length, 0) }
}

function plain(bytes: Buffer): string {
  return bytes.toString('utf8').replaceAll(/[\u00ad\u200b-\u200f\u2060\ufeff]/g, '')
}

if (import.meta.main) {
  const seed = Number(process.argv[2] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`seed ${seed}`)
  const report = await runLeaks({ seed, perKind: 10, kills: 12, finishMs: 120_000 })
  console.log(JSON.stringify(report, null, 2))
  if (report.leaks.length > 0 || report.unfinished > 0) process.exitCode = 1
}
