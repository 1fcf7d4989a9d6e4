/** Judges a rolling upgrade by what its processes wrote down and what the store has. */
import { decodeTime } from 'ulid'
import type { JobView, Mill } from '../../src/index.ts'
import { judge, type Line } from '../chaos/history.ts'
import type { Deed, Note } from './programs/lines.ts'

export interface UpgradeVerdict {
  readonly acknowledged: number
  readonly completed: number
  readonly dead: number
  /** Runs of the schedule of every second. */
  readonly ticks: number
  /** Leases that were lost: each may excuse one more start. */
  readonly lost: number
  /** Errors that the processes met, by their code. */
  readonly errors: Readonly<Record<string, number>>
  /** Each a sentence; empty when nothing was lost, doubled or refused. */
  readonly violations: readonly string[]
}

/** The job has two attempts. */
const STARTS: Readonly<Record<Deed, number>> = { complete: 1, retry: 2, die: 2 }

export async function judgeUpgrade(mill: Mill, notes: readonly Note[]): Promise<UpgradeVerdict> {
  const acknowledged = notes.filter((note) => note.what === 'acknowledged')
  const errors = notes.filter((note) => 'code' in note)
  const lines = notes.filter((note) => 'token' in note)
  // A log cannot say what became of a job: there the lines alone are judged, and the counts.
  const isListed = mill.engine.inspector !== undefined
  const jobs = isListed ? await jobsOf(mill, 'rolling') : null
  const ticks = isListed ? await jobsOf(mill, 'tick') : new Map<string, JobView>()
  const ids = acknowledged.map(({ id }) => id)
  const verdict = judge(isListed ? [...ids, ...ticks.keys()] : [], new Map([...(jobs ?? []), ...ticks]), lines)
  const { completed = 0, dead = 0 } = (await mill.counts()).rolling ?? {}
  const deeds = new Map(acknowledged.map(({ id, deed }) => [id, deed]))
  const byCode = Map.groupBy(errors, ({ code }) => code)
  return {
    acknowledged: ids.length,
    completed,
    dead,
    ticks: ticks.size,
    lost: verdict.lost,
    errors: Object.fromEntries([...byCode].map(([code, all]) => [code, all.length])),
    violations: [
      ...verdict.violations,
      ...[...byCode].map(([code, all]) => `${all.length} errors with ${code}, first: ${all[0]?.text}`),
      ...(completed + dead === ids.length ? [] : [`${completed + dead} jobs have ended, ${ids.length} were enqueued`]),
      ...judgeDeeds(deeds, jobs, lines),
      ...judgeTicks(ticks, lines),
    ],
  }
}

/** Each acknowledged job once, no other job, and none started more often than it must. */
function judgeDeeds(
  deeds: ReadonlyMap<string, Deed>,
  jobs: ReadonlyMap<string, JobView> | null,
  lines: readonly Line[],
): readonly string[] {
  const byJob = Map.groupBy(lines, ({ id }) => id)
  const strangers = [...(jobs?.keys() ?? [])].filter((id) => !deeds.has(id))
  return [
    ...(strangers.length === 0 ? [] : [`${strangers.length} jobs are stored that no producer has enqueued`]),
    ...[...deeds].flatMap(([id, deed]) => {
      const own = Map.groupBy(byJob.get(id) ?? [], ({ what }) => what)
      const [starts, excused] = [own.get('start')?.length ?? 0, own.get('lost')?.length ?? 0]
      const state = deed === 'die' ? 'dead_letter' : 'completed'
      const found = jobs === null ? state : jobs.get(id)?.state
      return [
        ...(found === state ? [] : [`job ${id} (${deed}) is ${found}, not ${state}`]),
        ...(starts >= STARTS[deed] && starts <= STARTS[deed] + excused
          ? []
          : [`job ${id} (${deed}) was started ${starts} times`]),
        ...(deed === 'die' || own.get('accepted')?.length === 1 ? [] : [`job ${id} was not completed once`]),
      ]
    }),
  ]
}

/** No second is missing between the first tick and the last, and each was started once. */
function judgeTicks(ticks: ReadonlyMap<string, JobView>, lines: readonly Line[]): readonly string[] {
  // The id of a scheduled run is a ULID of its tick.
  const times = [...ticks.keys()].map(decodeTime).sort((one, other) => one - other)
  const gaps = times.filter((atMs, index) => index > 0 && atMs - (times[index - 1] ?? 0) !== 1_000)
  const starts = lines.filter(({ what, id }) => what === 'start' && ticks.has(id))
  return [
    ...(gaps.length === 0 ? [] : [`${gaps.length} ticks of ${times.length} do not follow the one before by a second`]),
    ...(starts.length === ticks.size ? [] : [`${ticks.size} ticks were started ${starts.length} times`]),
  ]
}

async function jobsOf(mill: Mill, type: string): Promise<ReadonlyMap<string, JobView>> {
  const found = new Map<string, JobView>()
  for (;;) {
    const last = [...found.keys()].at(-1)
    const page = await mill.jobs({ type, limit: 1_000, ...(last !== undefined && { before: last }) })
    for (const job of page) found.set(job.id, job)
    if (page.length < 1_000) return found
  }
}
