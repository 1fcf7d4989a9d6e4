import type { SlaFactors } from './environment.ts'

/** `Burn-in`, `burn_in` and `burnin` are one stage. The statements fold a row's stage in the same way. */
export function foldStage(stage: string): string {
  return stage.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** What the factors are when the stage does not tell: the table's own, or none. */
export function factorOfTable(table: string, factors: SlaFactors): number | null {
  return table === 'asr_jobs' ? factors.asr : null
}

/**
 * How many times its expected duration a job may run, by its stage, else by its table. Null, so no deadline, where
 * neither tells: ending healthy work on a guess is worse than waiting for its heartbeats to stop.
 */
export function factorOf(table: string, stage: string | null, factors: SlaFactors): number | null {
  const folded = stage === null ? '' : foldStage(stage)
  const entry = Object.entries(factors).find(([name]) => name === folded)
  return entry?.[1] ?? factorOfTable(table, factors)
}

export interface Started {
  readonly table: string
  readonly stage: string | null
  readonly startedAtMs: number | null
  readonly expectedDurationMs: number | null
}

/** When heartbeats begin to be refused (X179). Null: never, because the duration was not estimated or has no factor. */
export function deadlineMs(job: Started, factors: SlaFactors): number | null {
  const factor = factorOf(job.table, job.stage, factors)
  if (factor === null || job.startedAtMs === null || job.expectedDurationMs === null) return null
  return job.startedAtMs + job.expectedDurationMs * factor
}
