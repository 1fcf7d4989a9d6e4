import type { Outcome } from '../../engine/outcome.ts'
import {
  type Finished,
  finishedAs,
  givesUp,
  isBeyondKeepLimit,
  KEEP_LIMIT_BY,
  RETENTION_BY,
  type Retention,
  type RetentionRule,
  type Sweep,
  type SweepStep,
} from '../../engine/retention.ts'
import type { StoredJob } from '../../job/job.ts'
import type { Keep } from '../../job/keep.ts'
import { shownState } from '../../job/states.ts'
import type { Clock } from '../../time/clock.ts'
import { removeLetter } from './dead-letters.ts'
import type { JobRow } from './rows.ts'
import type { MemoryStore } from './store.ts'

/** Estimate of what a job takes besides its texts: the row, the maps, its history. */
const ROW_BYTES = 1_000

export function createRetention(open: () => MemoryStore, clock: Clock): Retention {
  return {
    sweep: async (rules, step) => sweep(open(), rules, step, clock.nowMs()),
    usedBytes: async () =>
      open()
        .deadLetters.after(0, Number.POSITIVE_INFINITY)
        .reduce((sum, row) => sum + bytesOf(row), 0),
    // What is removed is free at once.
    compact: async () => false,
  }
}

function sweep(store: MemoryStore, rules: readonly RetentionRule[], step: SweepStep, nowMs: number): Sweep {
  const rows = store.deadLetters.after(Number(step.from ?? 0), step.max)
  const gone = rows.filter((row) => isGivenUp(row, rules))
  if (step.dryRun !== true) for (const row of gone) remove(store, row, step.by ?? RETENTION_BY, nowMs)
  store.wakeups.wakeClaims()
  const last = rows.length < step.max ? undefined : rows.at(-1)
  return { removed: gone.length, next: last === undefined ? null : String(last.serial) }
}

function isGivenUp(row: JobRow, rules: readonly RetentionRule[]): boolean {
  const what = finishedAs(shownState(row.state, row.ended))
  if (what === null || row.completedAtMs === null || row.neededBy > 0) return false
  return givesUp(rules, { what, type: row.job.type, completedAtMs: row.completedAtMs })
}

/** Applies the `keep` of an outcome that was just applied to this job. */
export function applyKeepLimits(
  store: MemoryStore,
  job: Pick<StoredJob, 'id' | 'type'>,
  outcome: Outcome,
  nowMs: number,
): void {
  if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep === undefined) return
  const what = outcome.kind === 'complete' ? 'completed' : 'dead'
  for (const row of outcome.keep === 0
    ? itself(store, job.id, what)
    : beyondKeepLimit(store, job.type, what, outcome)) {
    if (row.neededBy === 0) remove(store, row, KEEP_LIMIT_BY, nowMs)
  }
}

/** Empty if a newer version of its latest key superseded it instead. */
function itself(store: MemoryStore, id: string, what: Finished): readonly JobRow[] {
  const row = store.find(id)
  return row !== null && finishedAs(shownState(row.state, row.ended)) === what ? [row] : []
}

function beyondKeepLimit(
  store: MemoryStore,
  type: string,
  what: 'completed' | 'dead',
  { keep = 0, keepIsOwn }: Keep,
): readonly JobRow[] {
  const rows = store.deadLetters.finished(what, type)
  return rows.filter(({ job: { options } }, newer) => {
    const own = what === 'completed' ? options?.keepCompleted : options?.keepDead
    return newer >= keep && isBeyondKeepLimit(own, newer, { keepIsOwn })
  })
}

/** Removing a dead letter or a discarded job leaves an audit entry. */
function remove(store: MemoryStore, row: JobRow, by: typeof RETENTION_BY, nowMs: number): void {
  if (!removeLetter(store, row.job.id, by, nowMs)) store.deadLetters.forget(row)
}

function bytesOf({ job, result, progress }: JobRow): number {
  return ROW_BYTES + 2 * (job.payload.length + (result?.length ?? 0) + (progress?.length ?? 0))
}
