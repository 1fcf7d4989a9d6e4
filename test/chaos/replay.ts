/**
 * All dead letters are replayed by the command line, which is interrupted and called again, beside a worker that has
 * more to do than it can. `node test/chaos/replay.ts [engine url]` replays a hundred thousand; the test suite fewer.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type AnyJob, type Mill, NonRetryable, open, openDesk } from '../../src/index.ts'
import { busyJob, lostJob } from './replay-jobs.ts'

export interface ReplayOptions {
  readonly url: string
  readonly letters: number
  /** Jobs that wait for the worker: more than it can do in the time. */
  readonly busy: number
  /** How long the worker is watched alone. */
  readonly aloneMs: number
  /** The command is interrupted when so many are replayed. */
  readonly interruptAfter: number
  /** How many it replays per second until then. Default: no limit. */
  readonly rateBefore?: number
}

export interface ReplayReport {
  readonly alonePerSecond: number
  readonly besidePerSecond: number
  readonly kept: number
  readonly replaySeconds: number
  readonly replayedFirst: number
  readonly replayedThen: number
  /** Then its rate beside the desk was at least what is told here. */
  readonly workerRanOut: boolean
  readonly violations: readonly string[]
}

const CLI = fileURLToPath(new URL('../../bin/millrace.ts', import.meta.url))
const WORKER = fileURLToPath(new URL('./replay-worker.ts', import.meta.url))

export async function runReplayChaos(options: ReplayOptions): Promise<ReplayReport> {
  const mill = await open(options.url)
  const worker = await prepare(mill, options)
  try {
    const alone = await worker.rate(sleep(options.aloneMs))
    let outcomes: readonly Outcome[] = []
    const startedMs = performance.now()
    const beside = await worker.rate(
      (async () => {
        outcomes = [await replayAll(options, replayed(mill, options)), await replayAll(options, null)]
      })(),
    )
    const replaySeconds = (performance.now() - startedMs) / 1_000
    await worker.stop()
    const left = (await mill.counts())[busyJob.type]?.ready ?? 0
    const [first, then] = outcomes.map((outcome) => outcome.done)
    return {
      alonePerSecond: Math.round(alone),
      besidePerSecond: Math.round(beside),
      kept: beside / alone,
      replaySeconds,
      replayedFirst: first ?? 0,
      replayedThen: then ?? 0,
      workerRanOut: left === 0,
      violations: [...(await judge(mill, options.letters)), ...judgeOutcomes(outcomes, options.letters)],
    }
  } finally {
    worker.kill()
    await mill.close()
  }
}

const BATCH = 5_000

async function prepare(mill: Mill, { url, letters, busy }: ReplayOptions): Promise<BusyWorker> {
  await enqueue(mill, lostJob, letters)
  const undertaker = await mill.work(
    [
      lostJob.handledBy(() => {
        throw new NonRetryable('it cannot be done')
      }),
    ],
    { concurrency: 500 },
  )
  while ((await mill.counts())[lostJob.type]?.dead !== letters) await sleep(100)
  await undertaker.stop()
  await enqueue(mill, busyJob, busy)
  return BusyWorker.start(url)
}

async function enqueue(mill: Mill, job: AnyJob, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const payloads = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => ({ n: from + index }))
    await mill.enqueueMany(job, payloads)
  }
}

interface Tick {
  readonly completed: number
  readonly atMs: number
}

class BusyWorker {
  readonly #child: ChildProcess
  #last: Tick

  private constructor(child: ChildProcess, first: Tick) {
    this.#child = child
    this.#last = first
    child.on('message', (tick: Tick) => {
      this.#last = tick
    })
  }

  /** Resolves when it has begun to complete jobs. */
  static async start(url: string): Promise<BusyWorker> {
    const child = fork(WORKER, [url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    for (;;) {
      const [tick] = (await once(child, 'message')) as [Tick]
      if (tick.completed > 0) return new BusyWorker(child, tick)
    }
  }

  /** How many it completes in a second while something else goes on. */
  async rate(meanwhile: Promise<unknown>): Promise<number> {
    const before = this.#last
    await meanwhile
    const after = this.#last
    return ((after.completed - before.completed) / (after.atMs - before.atMs)) * 1_000
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await ended
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

interface Outcome {
  readonly done: number
  readonly interrupted: boolean
}

async function replayed(mill: Mill, { letters, interruptAfter }: ReplayOptions): Promise<void> {
  while (((await mill.counts())[lostJob.type]?.dead ?? 0) > letters - interruptAfter) await sleep(100)
}

/** The command as a user calls it. Ctrl-C is pressed when `interruption` resolves. */
async function replayAll(
  { url, rateBefore }: Pick<ReplayOptions, 'url' | 'rateBefore'>,
  interruption: Promise<void> | null,
): Promise<Outcome> {
  const args = [CLI, 'dead', 'replay-all', '--type', lostJob.type, '--engine', url, '--json']
  if (interruption !== null && rateBefore !== undefined) args.push('--rate', String(rateBefore))
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const ended = once(child, 'close')
  if (interruption !== null) {
    await Promise.race([interruption, ended])
    child.kill('SIGINT')
  }
  await ended
  return JSON.parse(out.trim().split('\n').at(-1) ?? '') as Outcome
}

function judgeOutcomes(outcomes: readonly Outcome[], letters: number): string[] {
  const [first, then] = outcomes
  const done = (first?.done ?? 0) + (then?.done ?? 0)
  return [
    ...(first?.interrupted && first.done > 0 ? [] : ['the first call was not interrupted in the middle']),
    ...(done === letters ? [] : [`${done} were said to be replayed of ${letters}`]),
  ]
}

/** Every letter is back in the queue, replayed once, with one entry in the audit. */
async function judge(mill: Mill, letters: number): Promise<string[]> {
  const violations: string[] = []
  const desk = openDesk(mill)
  const entries = new Map<string, number>()
  let before: number | undefined
  for (;;) {
    const page = await desk.audit({ action: 'replay', limit: 10_000, ...(before !== undefined && { before }) })
    for (const { jobId } of page) entries.set(jobId, (entries.get(jobId) ?? 0) + 1)
    before = page.at(-1)?.seq
    if (before === undefined) break
  }
  let found = 0
  let last: string | undefined
  for (;;) {
    const page = await mill.jobs({ type: lostJob.type, limit: 10_000, ...(last !== undefined && { before: last }) })
    for (const { id, state, replays } of page) {
      found += 1
      const audited = entries.get(id) ?? 0
      if (state === 'queued' && replays === 1 && audited === 1) continue
      violations.push(`${id} is ${state}, replayed ${replays} times with ${audited} entries`)
    }
    last = page.at(-1)?.id
    if (last === undefined) break
  }
  if (found !== letters) violations.push(`${found} letters of ${letters} are there`)
  return violations
}

if (import.meta.main) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-replay-'))
  const url = process.argv[2] ?? `sqlite:${join(folder, 'replay.db')}`
  console.log(`engine ${url}`)
  const report = await runReplayChaos({
    url,
    letters: 100_000,
    busy: 4_000_000,
    aloneMs: 10_000,
    interruptAfter: 30_000,
  })
  console.log(JSON.stringify({ ...report, violations: report.violations.slice(0, 20) }, null, 2))
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = report.violations.length === 0 && report.kept > 0.5 ? 0 : 1
}
