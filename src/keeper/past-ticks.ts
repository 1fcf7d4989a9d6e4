/** What became of the last ticks of a schedule, kept in its record: a tick that was left out has no job to tell of it. */

export const PAST_TICKS = ['run', 'run-now', 'skipped', 'missed'] as const

export interface PastTick {
  /**
   * `run`: a job was enqueued on the clock; `run-now`: by hand. `skipped`: the run before was not over. `missed`: no keeper
   * ran then.
   */
  readonly what: (typeof PAST_TICKS)[number]
  /** Of several that were left out one after the other, the first. */
  readonly atMs: number
  /** How many were left out; 1 for a run. A lower bound where one gap had more than 1000. */
  readonly count: number
  /** Null for what was left out. */
  readonly jobId: string | null
}

/** A record is written with every tick: it must stay small. */
export const PAST_TICKS_MAX = 10

/** The newest last. Ticks left out one after the other are one entry, so that they do not displace the runs. */
export function withTicks(past: readonly PastTick[], more: readonly PastTick[]): readonly PastTick[] {
  const all = [...past]
  for (const tick of more) {
    const last = all.at(-1)
    if (tick.jobId === null && last?.what === tick.what) {
      all[all.length - 1] = { ...last, count: last.count + tick.count }
    } else all.push(tick)
  }
  return all.slice(-PAST_TICKS_MAX)
}

/** Entries that a newer version has written otherwise are left out. */
export function readTicks(value: unknown): readonly PastTick[] {
  return Array.isArray(value) ? value.flatMap(readTick) : []
}

function readTick(value: unknown): PastTick[] {
  const { what: said, atMs, count, jobId }: Readonly<Partial<Record<string, unknown>>> = Object(value)
  const what = PAST_TICKS.find((one) => one === said)
  if (what === undefined || typeof atMs !== 'number' || typeof count !== 'number') return []
  return [{ what, atMs, count, jobId: typeof jobId === 'string' ? jobId : null }]
}
