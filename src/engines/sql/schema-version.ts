import { EngineError } from '../../errors.ts'

/** A newer Millrace may have given columns another meaning: writing to them could lose jobs. */
export function assertNotNewer(version: number, known: number): void {
  if (version <= known) return
  throw new EngineError(
    'ERR_SCHEMA_NEWER',
    `the database has schema version ${version}, this Millrace knows ${known}; upgrade Millrace, nothing was changed`,
  )
}
