import type { Names } from './names.ts'
import { NOW } from './statements.ts'

/** Which table of which database of which server a connection would write to. */
export const LOOK_AT_PLACE = ({ jobs }: Names): string => `
SELECT ${NOW} AS now,
  concat_ws(' ', pg_postmaster_start_time(), current_database(), to_regclass('${jobs.replaceAll("'", "''")}')::oid) AS place`

/**
 * The lock that the INSERT takes anyway. The server refuses it outside of a transaction, which nothing else tells for
 * certain: the time of a statement is later than that of its own transaction in the extended protocol.
 */
export const LOCK_AS_INSERT = ({ jobs }: Names): string => `LOCK TABLE ${jobs} IN ROW EXCLUSIVE MODE`
