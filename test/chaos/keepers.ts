/**
 * Keeper processes on one engine, the active one killed or paused again and again, while a schedule of every second runs.
 * `node test/chaos/keepers.ts` runs the full minute of each; the test suite runs short ones.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { decodeTime } from 'ulid'
import { leadershipOf } from '../../src/engine/capability-checks.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'

export interface KeeperChaosOptions {
  readonly keepers: number
  readonly strikes: number
  /** Time between two strikes. */
  readonly everyMs: number
  readonly interval: `${number}ms`
  /** `kill`: SIGKILL, and a new process in its place. `pause`: SIGSTOP until well past the lease, then SIGCONT. */
  readonly blow: 'kill' | 'pause'
  readonly missed: 'one' | 'all'
}

export interface KeeperChaosReport {
  readonly blow: string
  readonly missed: string
  readonly strikes: number
  /** How many keepers led one after another. */
  readonly terms: number
  readonly ticks: number
  readonly ran: number
  /** Runs beyond the first of a tick. */
  readonly twice: number
  /** Ticks between the first and the last run that did not run. */
  readonly missing: number
  /** The longest time without a tick. */
  readonly gapMsMax: number
  readonly lateMsMax: number
}

const MAIN = fileURLToPath(new URL('../../bin/millrace.ts', import.meta.url))
const ELECTION = 'keeper:reap+schedules+retention+history'
const SECOND_MS = 1_000
/** For what comes within a second or two where the machine is not busy with something else. */
const PATIENCE_MS = 60_000
const TICKS_MIN = 3

export async function runKeeperChaos(options: KeeperChaosOptions): Promise<KeeperChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-keepers-'))
  const url = `sqlite:${join(folder, 'keepers.db')}`
  const runs: Run[] = []
  const beat = defineJob({
    type: 'beat',
    run: ({ job }) => void runs.push({ tickMs: decodeTime(job.id), atMs: Date.now() }),
  })
  const mill = await open(url)
  const crew = new Crew(url, options)
  try {
    await mill.schedules.upsert('beat', { type: beat, cron: '* * * * * *', missed: options.missed, overlap: 'allow' })
    await mill.work([beat], { keeper: false, concurrency: 50 })
    await crew.start()
    const firstTerm = await strike(mill, crew, options)
    // The last one struck may have left ticks to its successor.
    await sleep(4 * Number.parseInt(options.interval, 10) + SECOND_MS)
    await enough(runs)
    const terms = (await activeKeeper(mill)).number - firstTerm + 1
    await mill.schedules.pause('beat')
    await settle(mill)
    return { ...judge(runs), terms, strikes: options.strikes, blow: options.blow, missed: options.missed }
  } finally {
    crew.kill()
    await mill.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

interface Run {
  readonly tickMs: number
  readonly atMs: number
}

class Crew {
  readonly #url: string
  readonly #options: KeeperChaosOptions
  readonly #members = new Map<number, ChildProcess>()

  constructor(url: string, options: KeeperChaosOptions) {
    this.#url = url
    this.#options = options
  }

  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.keepers }, () => this.hire()))
  }

  /** Resolves when the keeper campaigns. */
  async hire(): Promise<void> {
    const args = ['keep', '--engine', this.#url, '--interval', this.#options.interval, '--json']
    const child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.pid === undefined) throw new Error('the keeper did not start')
    this.#members.set(child.pid, child)
    let said = ''
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the keeper ended with ${code}: ${said}`)))
      child.stdout?.on('data', (text) => {
        said = `${said}${text}`.slice(-2_000)
        if (said.includes('Keeper started')) resolve()
      })
    })
    child.on('error', () => {})
  }

  /** One that is paused goes on when `isOver`. */
  async strike(pid: number, isOver: () => Promise<boolean>): Promise<void> {
    const child = this.#members.get(pid)
    if (child === undefined) throw new Error(`the active keeper ${pid} is not one of ours`)
    if (this.#options.blow === 'kill') {
      this.#members.delete(pid)
      child.kill('SIGKILL')
      void this.hire().catch(() => {})
      return
    }
    child.kill('SIGSTOP')
    await sleep(3 * Number.parseInt(this.#options.interval, 10))
    for (const untilMs = performance.now() + PATIENCE_MS; performance.now() < untilMs && !(await isOver()); )
      await sleep(50)
    child.kill('SIGCONT')
  }

  kill(): void {
    for (const child of this.#members.values()) child.kill('SIGKILL')
  }
}

/** Answers with the number of the first term. */
async function strike(mill: Mill, crew: Crew, options: KeeperChaosOptions): Promise<number> {
  let first: number | null = null
  for (let left = options.strikes; left > 0; left -= 1) {
    await sleep(options.everyMs)
    const leader = await activeKeeper(mill)
    first ??= leader.number
    await crew.strike(leader.pid, async () => (await activeKeeper(mill)).number !== leader.number)
  }
  return first ?? 0
}

async function activeKeeper(mill: Mill): Promise<{ pid: number; number: number }> {
  for (const untilMs = performance.now() + PATIENCE_MS; performance.now() < untilMs; await sleep(50)) {
    const term = await leadershipOf(mill.engine).leader(ELECTION)
    if (term) return { pid: Number(term.holder.split(':')[1]), number: term.number }
  }
  throw new Error(`no keeper became leader within ${PATIENCE_MS} ms`)
}

/** Waits for so many ticks that there is something to judge. */
async function enough(runs: readonly Run[]): Promise<void> {
  const ticks = (): number => new Set(runs.map(({ tickMs }) => tickMs)).size
  for (const untilMs = performance.now() + PATIENCE_MS; performance.now() < untilMs && ticks() < TICKS_MIN; )
    await sleep(100)
}

async function settle(mill: Mill): Promise<void> {
  for (const untilMs = performance.now() + PATIENCE_MS; performance.now() < untilMs; await sleep(100)) {
    const { beat } = await mill.counts()
    if (beat !== undefined && beat.ready + beat.inProgress === 0) return
  }
}

function judge(runs: readonly Run[]) {
  const byTick = Map.groupBy(runs, ({ tickMs }) => tickMs)
  const ticks = [...byTick.keys()].sort((one, other) => one - other)
  const [first = 0] = ticks
  const expected = ticks.length === 0 ? 0 : ((ticks.at(-1) ?? 0) - first) / SECOND_MS + 1
  const gaps = ticks.slice(1).map((tick, index) => tick - (ticks[index] ?? tick))
  return {
    ticks: expected,
    ran: ticks.length,
    twice: runs.length - ticks.length,
    missing: expected - ticks.length,
    gapMsMax: Math.max(0, ...gaps),
    lateMsMax: Math.max(0, ...runs.map(({ tickMs, atMs }) => atMs - tickMs)),
  }
}

if (import.meta.main) {
  const full = { keepers: 3, strikes: 12, everyMs: 5_000, interval: '1000ms' } as const
  for (const [blow, missed] of [
    ['kill', 'all'],
    ['kill', 'one'],
    ['pause', 'all'],
  ] as const) {
    const report = await runKeeperChaos({ ...full, blow, missed })
    console.log(JSON.stringify(report))
    if (report.twice > 0 || (missed === 'all' && report.missing > 0)) process.exitCode = 1
  }
}
