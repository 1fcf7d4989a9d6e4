/** What the commands with --tables ask of the workload that knows job tables. */
import type { Finding } from '../engine/engine.ts'
import type { Log } from '../job/definition.ts'
import type { HealthAnswer } from '../observe/health.ts'
import type { Metrics } from '../observe/metrics/instrument.ts'
import type { Clock } from '../time/clock.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Leases in job tables that the user created: a second kind of table beside the engine's own. */
export interface JobTableCommands {
  /** One run over the tables. The settings come from the environment. */
  reap(
    url: string,
    tables: readonly string[],
    options: {
      readonly environment: Environment
      readonly onReaped: (row: ReapedRow) => void
    },
  ): Promise<{ readonly requeuedIds: readonly string[]; readonly failedIds: readonly string[] }>
  /** What is wrong with the tables, and what to do. */
  examine(
    url: string,
    tables: readonly string[],
    options: { readonly environment: Environment },
  ): Promise<readonly Finding[]>
  /** For a reaper that runs until it is stopped. An interval of null is the one of the environment. */
  openReaper(
    url: string,
    tables: readonly string[],
    options: {
      readonly environment: Environment
      readonly everyMs: number | null
      readonly log: Log
      readonly clock: Clock
    },
  ): Promise<OpenReaper>
  /**
   * Adds the missing columns in one transaction and returns the statements; with `dryRun` it only returns them. With
   * `create`, a table that does not exist is created, and otherwise refused.
   */
  migrate(
    url: string,
    tables: readonly string[],
    options: { readonly dryRun: boolean; readonly create: boolean },
  ): Promise<{ readonly statements: readonly string[] }>
}

/** Its probes answer before it starts, and whatever becomes of the database. */
export interface OpenReaper {
  readonly metrics: Pick<Metrics, 'contentType' | 'collectMetrics'>
  /** Health, by path. */
  readonly probes: Readonly<Record<string, () => Promise<HealthAnswer>>>
  start(): { stop(): Promise<void> }
  close(): Promise<void>
}

/** What happened to one row, reported after the commit. */
export interface ReapedRow {
  readonly action: 'requeued' | 'failed'
  readonly table: string
  readonly id: string
  readonly attempt: number
  /** The worker that held it last. */
  readonly lockedBy: string | null
}

export interface WatchedTables {
  readonly names: readonly string[]
  /** The database they are in. */
  readonly url: string
  readonly environment: Environment
}
