import type { JobLogs, KeptLine, SaidLines } from '../../engine/job-logs.ts'
import type { SqliteCore } from './core.ts'
import type { Connection } from './database.ts'

/** What handlers said. The trigger removes it with its job, whatever deletes the row. */
export const JOB_LOGS = `
CREATE TABLE IF NOT EXISTS job_logs (
  job_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS job_logs_removed AFTER DELETE ON job_queue
BEGIN DELETE FROM job_logs WHERE job_id = OLD.id; END;
`

export const LAST_LINE = `SELECT coalesce(max(seq), 0) AS seq FROM job_logs WHERE job_id = :id`

export const ADD_LINES = `
INSERT INTO job_logs (job_id, seq, line)
SELECT :id, :before + 1 + key, value FROM json_each(:lines) WHERE EXISTS (SELECT 1 FROM job_queue WHERE id = :id)`

/** As `newestLines` of engine/job-logs.ts chooses. */
export const TRIM_LINES = `
DELETE FROM job_logs WHERE job_id = :id AND seq < :last AND seq <= max(:last - :lines, coalesce((
  SELECT max(seq) FROM (
    SELECT seq, sum(length(CAST(line AS BLOB))) OVER (ORDER BY seq DESC) AS bytes FROM job_logs WHERE job_id = :id)
  WHERE bytes > :bytes), 0))`

export const READ_LINES = `SELECT seq, line FROM job_logs WHERE job_id = :id ORDER BY seq`

export function createLogs(core: SqliteCore): JobLogs {
  return {
    // After a power cut the last lines are missing, so this does not wait for the disk.
    append: (said, keep) =>
      core.writeVolatile('logs', () => {
        for (const one of said) append(core.connection, one, keep)
      }),
    read: (id) => core.read('logs', () => core.connection.prepare(READ_LINES).all({ id }) as unknown[] as KeptLine[]),
  }
}

function append(
  connection: Connection,
  { job: { id }, skipped, lines }: SaidLines,
  keep: { readonly lines: number; readonly bytes: number },
): void {
  const { seq } = connection.prepare(LAST_LINE).get({ id }) as { seq: number }
  const before = seq + skipped
  const { changes } = connection.prepare(ADD_LINES).run({ id, before, lines: JSON.stringify(lines) })
  // The first lines fit by themselves.
  if (seq > 0 && Number(changes) > 0) connection.prepare(TRIM_LINES).run({ id, last: before + lines.length, ...keep })
}
