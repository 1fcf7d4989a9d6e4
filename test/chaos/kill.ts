/**
 * Worker processes on one engine, killed and paused at random while they work through a backlog.
 * `node test/chaos/kill.ts [engine url]` runs the full minute; the test suite runs a short one.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type JobView, type Mill, open } from '../../src/index.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { Crew } from './crew.ts'
import { judge, type Verdict } from './history.ts'
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
  /** What else happens, evenly spread over the chaos: a server is restarted, a wire is cut. */
  readonly disasters?: readonly (() => Promise<void>)[]
}

export interface ChaosReport extends Verdict {
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
    const ids = await fillBacklog(mill, options, random)
    const [strikes, disasters] = await Promise.all([
      strike(crew, options.chaosMs, random),
      befall(options.disasters ?? [], options.chaosMs),
    ])
    crew.mend()
    await finish(mill, options.finishMs)
    await crew.stop()
    const verdict = judge(ids, await readJobs(mill, ids), crew.lines())
    const violations = [...verdict.violations, ...crew.crashes]
    return { ...verdict, violations, ...strikes, disasters, seconds: (performance.now() - startedAtMs) / 1_000 }
  } finally {
    crew.kill()
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function fillBacklog(mill: Mill, { jobs, jobMsMax }: ChaosOptions, random: () => number): Promise<string[]> {
  const ids: string[] = []
  for (let left = jobs; left > 0; left -= 1_000) {
    const payloads = Array.from({ length: Math.min(left, 1_000) }, () => ({ ms: Math.round(random() * jobMsMax) }))
    for (const receipt of await mill.enqueueMany(chaosJob, payloads)) ids.push(receipt.id)
  }
  return ids
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
  console.log(JSON.stringify({ ...report, violations: report.violations.slice(0, 20) }, null, 2))
  process.exitCode = report.violations.length === 0 ? 0 : 1
}
