/**
 * Worker processes in one consumer group, killed, paused and sent away at random, and the broker restarted twice, while
 * they work through records of 500 keys. `node test/chaos/kafka.ts` runs the whole; `CHAOS_SEED` repeats a run.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Mill, open } from '../../src/index.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { type OwnKafka, startKafka } from '../servers/kafka.ts'
import { Crew } from './crew.ts'
import { machineMs } from './history.ts'
import { chaosJob } from './job.ts'
import { type Blow, judgeKafka, type KafkaVerdict } from './kafka-history.ts'
import { befall } from './kill.ts'

export interface KafkaChaosOptions {
  readonly records: number
  readonly keys: number
  readonly partitions: number
  /** Handlers take up to this long, evenly spread. */
  readonly jobMsMax: number
  readonly processes: number
  /** How long processes are struck; afterwards the survivors finish. */
  readonly chaosMs: number
  readonly finishMs: number
  /** A strike comes after so long, evenly spread between this and twice of it; 0 strikes nobody. */
  readonly strikeMs: number
  readonly restarts: readonly ('stop' | 'kill')[]
  readonly seed: number
}

/** One broker, or several of which one after the other is taken away. */
export type StruckKafka = Pick<OwnKafka, 'url' | 'stop' | 'kill' | 'start' | 'end'>

export interface KafkaChaosReport extends KafkaVerdict {
  readonly kills: number
  readonly pauses: number
  readonly leaves: number
  /** How long the broker was away each time, in milliseconds. */
  readonly awayMs: readonly number[]
  /** Writes that the broker did not acknowledge: whether they are there is unknown. */
  readonly unacknowledged: number
  readonly seconds: number
}

const SESSION_MS = 3_000
const PAUSE_MS = 5_000
const BATCH = 250

export async function runKafkaChaos(options: KafkaChaosOptions, given?: StruckKafka): Promise<KafkaChaosReport> {
  const random = seededRandom(options.seed)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const server = given ?? (await startKafka())
  const session = `session=${SESSION_MS}&heartbeat=300&drain=3000`
  const patient = `${server.url}?group=chaos&partitions=${options.partitions}&${session}`
  const url = `${patient}&timeout=3000`
  // Nobody starts this one again if a busy broker is late.
  const mill = await open(`${patient}&timeout=30000`)
  const startedAtMs = performance.now()
  const crew = new Crew({ url, folder, processes: options.processes, pauseMs: PAUSE_MS })
  const blows: Blow[] = []
  const restarts = options.restarts.map((how) => async () => {
    const blow: Blow = { what: 'broker', pid: null, fromMs: machineMs(), untilMs: Number.POSITIVE_INFINITY }
    blows.push(blow)
    await server[how]()
    await server.start()
    blow.untilMs = machineMs()
  })
  try {
    const first = await produce(mill, { ...options, records: options.records / 2, spreadMs: 0 }, random)
    await crew.start()
    const [then] = await Promise.all([
      produce(mill, { ...options, records: options.records / 2, spreadMs: options.chaosMs }, random),
      strike(crew, options, random, blows),
      befall(restarts, options.chaosMs),
    ])
    crew.mend()
    const rest = await finish(mill, options.finishMs)
    await crew.stop()
    const verdict = judgeKafka([...first.ids, ...then.ids], crew.lines(), blows)
    const count = (what: Blow['what']): number => blows.filter((blow) => blow.what === what).length
    return {
      ...verdict,
      violations: [...verdict.violations, ...crew.crashes, ...rest],
      ...{ kills: count('kill'), pauses: count('pause'), leaves: count('leave') },
      awayMs: blows.filter(({ what }) => what === 'broker').map(({ fromMs, untilMs }) => Math.round(untilMs - fromMs)),
      unacknowledged: first.unacknowledged + then.unacknowledged,
      seconds: (performance.now() - startedAtMs) / 1_000,
    }
  } finally {
    crew.kill()
    await mill.close()
    await server.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** So many acknowledged records over random keys, all at once or evenly spread. Others may be there or not. */
async function produce(
  mill: Mill,
  {
    records,
    keys,
    jobMsMax,
    spreadMs,
  }: Pick<KafkaChaosOptions, 'records' | 'keys' | 'jobMsMax'> & { spreadMs: number },
  random: () => number,
): Promise<{ readonly ids: readonly string[]; readonly unacknowledged: number }> {
  const ids: string[] = []
  let unacknowledged = 0
  while (ids.length < records) {
    const batch = Array.from({ length: Math.min(records - ids.length, BATCH) }, () =>
      mill.enqueue(chaosJob, { ms: Math.round(random() * jobMsMax) }, { key: `k${Math.floor(random() * keys)}` }),
    )
    const results = await Promise.allSettled(batch)
    for (const result of results) if (result.status === 'fulfilled') ids.push(result.value.id)
    unacknowledged += results.filter(({ status }) => status === 'rejected').length
    if (spreadMs > 0) await sleep((spreadMs * BATCH) / records)
  }
  return { ids, unacknowledged }
}

async function strike(crew: Crew, options: KafkaChaosOptions, random: () => number, blows: Blow[]): Promise<void> {
  if (options.strikeMs === 0) return
  for (const untilMs = performance.now() + options.chaosMs; performance.now() < untilMs; ) {
    await sleep(options.strikeMs * (1 + random()))
    const child = crew.pick(random)
    if (child?.pid === undefined) continue
    const lot = random()
    strikeOne(crew, child, lot < 0.45 ? 'kill' : lot < 0.75 ? 'pause' : 'leave', blows)
  }
}

function strikeOne(crew: Crew, child: ChildProcess, what: 'kill' | 'pause' | 'leave', blows: Blow[]): void {
  const blow: Blow = { what, pid: child.pid ?? null, fromMs: machineMs(), untilMs: Number.POSITIVE_INFINITY }
  blows.push(blow)
  switch (what) {
    case 'kill':
      child.kill('SIGKILL')
      return
    case 'leave':
      crew.leave(child)
      return
    case 'pause':
      // What it does on waking is still the pause's doing.
      void crew.pause(child).then(() => {
        blow.untilMs = machineMs() + SESSION_MS
      })
      return
    default:
      what satisfies never
  }
}

async function finish(mill: Mill, finishMs: number): Promise<readonly string[]> {
  let rest = 'nothing was heard'
  for (const untilMs = performance.now() + finishMs; performance.now() < untilMs; await sleep(200)) {
    const counts = await mill.counts().then(
      (all) => all[chaosJob.type],
      () => undefined,
    )
    if (counts === undefined) continue
    if (counts.ready + counts.delayed + counts.inProgress === 0) return []
    rest = JSON.stringify(counts)
  }
  return [`records were left at the end: ${rest}`]
}

/** Prints it, and fails the process if a guarantee was broken. */
export function printKafkaReport(report: KafkaChaosReport): void {
  const [violations, unprovoked] = [report.violations.slice(0, 20), report.unprovoked.slice(0, 20)]
  console.log(JSON.stringify({ ...report, violations, unprovoked }, null, 2))
  process.exitCode = report.violations.length + report.unprovoked.length === 0 ? 0 : 1
}

if (import.meta.main) {
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`seed ${seed}`)
  const report = await runKafkaChaos({
    ...{ records: 20_000, keys: 500, partitions: 6, processes: 3 },
    ...{ jobMsMax: 150, chaosMs: 60_000, finishMs: 120_000, strikeMs: 1_500 },
    restarts: ['stop', 'kill'],
    seed,
  })
  printKafkaReport(report)
}
