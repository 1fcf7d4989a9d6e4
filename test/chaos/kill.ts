/**
 * Worker processes on one engine, killed and paused at random while they work through a backlog.
 * `node test/chaos/kill.ts [engine url]` runs a minute of it; test/crash/failover.test.ts uses it.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type JobView, type Mill, open } from '../../src/index.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { Crew } from './crew.ts'
import { judge, type Line, machineMs, type Verdict } from './history.ts'
import { chaosJob } from './job.ts'

export interface ChaosOptions {
  readonly url: string
  readonly jobs: number
  /** Handlers take up to this long, evenly spread: long enough that the backlog lasts as long as the chaos. */
  readonly jobMsMax: number
  readonly processes: number
  /** How long processes are killed and paused; afterwards the survivors finish the backlog. */
  readonly chaosMs: number
  /** How long the survivors may take. */
  readonly finishMs: number
  readonly seed: number
  /** How many of the jobs are enqueued one by one during the chaos; default: none, all are there before it. */
  readonly trickle?: number
  /** What else happens, evenly spread over the chaos: a server is restarted, a wire is cut. */
  readonly disasters?: readonly (() => Promise<void>)[]
}

export interface ChaosReport extends Verdict {
  /** When each job was acknowledged, by the machine's clock. */
  readonly acknowledged: ReadonlyMap<string, number>
  /** Enqueues that failed: whether the jobs are there is unknown. */
  readonly unacknowledged: number
  /** What the workers wrote down. */
  readonly lines: readonly Line[]
  readonly kills: number
  readonly pauses: number
  readonly disasters: number
  readonly seconds: number
}

/** Beyond the lease of two seconds and the scan of one: a process that wakes up after this is a zombie. */
const PAUSE_MS = 4_000

export async function runKillChaos(options: ChaosOptions): Promise<ChaosReport> {
  const random = seededRandom(options.seed)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const lines = join(folder, 'lines')
  mkdirSync(lines)
  const mill = await open(options.url)
  const startedAtMs = performance.now()
  const crew = new Crew({ url: options.url, folder: lines, processes: options.processes, pauseMs: PAUSE_MS })
  try {
    // Only when all are ready: where processes start slowly, the first ones would have done most of it before the first blow.
    await crew.start()
    const acknowledged = new Map<string, number>()
    await fillBacklog(mill, options, random, acknowledged)
    const [strikes, disasters, unacknowledged] = await Promise.all([
      strike(crew, options.chaosMs, random),
      befall(options.disasters ?? [], options.chaosMs),
      trickle(mill, options, seededRandom(options.seed + 1), acknowledged),
    ])
    crew.mend()
    await finish(mill, options.finishMs)
    await crew.stop()
    const lines = crew.lines()
    const ids = [...acknowledged.keys()]
    const verdict = judge(ids, await readJobs(mill, ids), lines)
    const violations = [...verdict.violations, ...crew.crashes]
    const seconds = (performance.now() - startedAtMs) / 1_000
    return { ...verdict, violations, ...strikes, disasters, acknowledged, unacknowledged, lines, seconds }
  } finally {
    crew.kill()
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function fillBacklog(
  mill: Mill,
  { jobs, jobMsMax, trickle: later = 0 }: ChaosOptions,
  random: () => number,
  acknowledged: Map<string, number>,
): Promise<void> {
  for (let left = jobs - later; left > 0; left -= 1_000) {
    const payloads = Array.from({ length: Math.min(left, 1_000) }, () => ({ ms: Math.round(random() * jobMsMax) }))
    for (const { id } of await mill.enqueueMany(chaosJob, payloads)) acknowledged.set(id, machineMs())
  }
}

/** Evenly spread over the chaos, some at a time. Returns how many were not acknowledged. */
async function trickle(
  mill: Mill,
  { trickle: jobs = 0, jobMsMax, chaosMs }: ChaosOptions,
  random: () => number,
  acknowledged: Map<string, number>,
): Promise<number> {
  let unacknowledged = 0
  const enqueue = async (): Promise<void> => {
    try {
      const { id } = await mill.enqueue(chaosJob, { ms: Math.round(random() * jobMsMax) })
      acknowledged.set(id, machineMs())
    } catch {
      unacknowledged += 1
    }
  }
  const under = new Set<Promise<void>>()
  for (let index = 0; index < jobs; index += 1) {
    const one = enqueue().finally(() => under.delete(one))
    under.add(one)
    await sleep(chaosMs / jobs)
  }
  await Promise.all(under)
  return unacknowledged
}

async function strike(crew: Crew, chaosMs: number, random: () => number): Promise<{ kills: number; pauses: number }> {
  let kills = 0
  let pauses = 0
  for (const untilMs = performance.now() + chaosMs; performance.now() < untilMs; ) {
    await sleep(200 + random() * 600)
    const child = crew.pick(random)
    if (child === undefined) continue
    if (random() < 0.75) {
      kills += 1
      child.kill('SIGKILL')
    } else {
      pauses += 1
      void crew.pause(child)
    }
  }
  return { kills, pauses }
}

export async function befall(disasters: readonly (() => Promise<void>)[], chaosMs: number): Promise<number> {
  for (const disaster of disasters) {
    await sleep(chaosMs / (disasters.length + 1))
    await disaster()
  }
  return disasters.length
}

async function finish(mill: Mill, finishMs: number): Promise<void> {
  for (const untilMs = performance.now() + finishMs; performance.now() < untilMs; await sleep(200)) {
    const counts = await mill.counts().then(
      (all) => all[chaosJob.type],
      // A server that has just come back may break the connections that it finds.
      () => undefined,
    )
    if (counts !== undefined && counts.ready + counts.delayed + counts.inProgress === 0) return
  }
}

async function readJobs(mill: Mill, ids: readonly string[]): Promise<Map<string, JobView>> {
  const jobs = new Map<string, JobView>()
  for (const id of ids) {
    const job = await mill.job(id)
    if (job !== null) jobs.set(id, job)
  }
  return jobs
}

/** Without what is long. */
export function summaryOf<Report extends ChaosReport>({ lines: _, acknowledged, violations, ...report }: Report) {
  return { ...report, acknowledged: acknowledged.size, violations: violations.length }
}

/** Prints it, and fails the process if a guarantee was broken. */
export function printReport(report: ChaosReport): void {
  console.log(JSON.stringify(summaryOf(report), null, 2))
  for (const violation of report.violations.slice(0, 20)) console.log(violation)
  process.exitCode = report.violations.length === 0 ? 0 : 1
}

if (import.meta.main) {
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  const file = join(mkdtempSync(join(tmpdir(), 'millrace-chaos-db-')), 'chaos.db')
  const url = process.argv[2] ?? `sqlite:${file}`
  console.log(`seed ${seed}, engine ${url}`)
  const report = await runKillChaos({
    url,
    jobs: 20_000,
    jobMsMax: 1_000,
    processes: 10,
    chaosMs: 60_000,
    finishMs: 120_000,
    seed,
  })
  printReport(report)
}
