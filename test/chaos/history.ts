import type { JobView } from '../../src/job/job.ts'
import { isFinished } from '../../src/job/states.ts'

/** What a worker process wrote down, one line each, before and after it ran a handler. */
export interface Line {
  /** `done`: the handler has returned, and is about to settle. */
  readonly what: 'start' | 'done' | 'accepted' | 'lost'
  readonly id: string
  readonly key: string | null
  readonly attempt: number
  readonly token: string
  readonly pid: number
  /** Of the machine's monotonic clock, which all processes share. */
  readonly atMs: number
}

export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export interface Verdict {
  readonly completed: number
  readonly dead: number
  /** Jobs that were started more than once: what the kills and pauses cost. */
  readonly rerun: number
  /** Late holders that were told so. */
  readonly lost: number
  /** Each a sentence; empty when every guarantee held. */
  readonly violations: readonly string[]
}

/** Judges a run by what the workers wrote down and what the engine has stored. */
export function judge(
  expected: readonly string[],
  jobs: ReadonlyMap<string, JobView>,
  lines: readonly Line[],
): Verdict {
  const violations: string[] = []
  const byJob = Map.groupBy(lines, (line) => line.id)
  let rerun = 0
  for (const id of expected) {
    const job = jobs.get(id)
    const own = byJob.get(id) ?? []
    if (job === undefined) {
      violations.push(`I1: job ${id} is gone`)
      continue
    }
    const starts = own.filter((line) => line.what === 'start')
    if (starts.length > 1) rerun += 1
    violations.push(
      ...judgeJob(
        job,
        starts,
        own.filter((line) => line.what === 'accepted'),
      ),
    )
  }
  const states = [...jobs.values()]
  return {
    completed: states.filter((job) => job.state === 'completed').length,
    dead: states.filter((job) => job.state === 'dead_letter').length,
    rerun,
    lost: lines.filter((line) => line.what === 'lost').length,
    violations,
  }
}

function judgeJob(job: JobView, starts: readonly Line[], accepted: readonly Line[]): string[] {
  const violations: string[] = []
  if (!isFinished(job.state)) violations.push(`I6: job ${job.id} is still ${job.state}`)
  if (starts.length > job.attempts)
    violations.push(`I5: job ${job.id} was started ${starts.length} times of ${job.attempts}`)
  if (job.attempt > job.attempts) violations.push(`I5: job ${job.id} counts ${job.attempt} attempts of ${job.attempts}`)
  if (new Set(starts.map((line) => line.token)).size !== starts.length)
    violations.push(`I4: job ${job.id} was started twice under one lease`)
  if (accepted.length > 1) violations.push(`I3: ${accepted.length} completions of job ${job.id} were accepted`)
  const [completion] = accepted
  if (completion !== undefined && job.state !== 'completed')
    violations.push(`I3: job ${job.id} is ${job.state} though a completion was accepted`)
  if (completion !== undefined && tokenOf(job.result) !== completion.token) {
    violations.push(`I3: the stored result of job ${job.id} is not that of the accepted completion`)
  }
  return violations
}

function tokenOf(result: unknown): unknown {
  return typeof result === 'object' && result !== null ? Reflect.get(result, 'token') : undefined
}
