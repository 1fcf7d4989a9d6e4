/**
 * Tables that are not the engine's but the user's, with a status and the lease columns of document E: an engine whose
 * database may hold such tables can give them those columns, and requeue or fail the rows whose leases have ended.
 */

/** What happened to one row, told after it was committed. */
export interface ReapedRow {
  readonly action: 'requeued' | 'failed'
  readonly table: string
  readonly id: string
  readonly attempt: number
  /** The worker that held it last. */
  readonly lockedBy: string | null
}

export interface ReapedTables {
  readonly requeuedIds: readonly string[]
  readonly failedIds: readonly string[]
}

export interface OwnTables {
  /** One run. The figures come from the environment, as document E names them. */
  reap(
    url: string,
    tables: readonly string[],
    options: {
      readonly environment: Readonly<Record<string, string | undefined>>
      readonly onReaped: (row: ReapedRow) => void
    },
  ): Promise<ReapedTables>
  /** Adds what is missing, all of it or nothing; looks only with `dryRun`. Answers the statements, none when nothing is. */
  migrate(
    url: string,
    tables: readonly string[],
    options: { readonly dryRun: boolean },
  ): Promise<{ readonly statements: readonly string[] }>
}
