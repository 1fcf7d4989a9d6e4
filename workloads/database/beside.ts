/** Where the tables of a preset are: beside its jobs, if these are in a database. */

/** For engines that hold no tables. */
const DATABASE_DEFAULT = 'sqlite:./millrace.db'

/** The configured URL, or that of the engine if it is SQLite or Postgres, or else a file of SQLite. */
export function databaseBeside(engine: string, configured: string | undefined): string {
  if (configured !== undefined) return configured
  return /^(?:sqlite|postgres|postgresql):/.test(engine) ? engine : DATABASE_DEFAULT
}
