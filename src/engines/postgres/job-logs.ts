import type { JobLogs, KeptLine } from '../../engine/job-logs.ts'
import type { PostgresCore } from './core.ts'
import { arrayOf, arrayOfNumbers } from './driver.ts'
import { NOW, rowsFrom } from './fragments.ts'
import { type Names, quote } from './names.ts'

/**
 * What handlers said. The trigger removes it with its job, whatever deletes the row; it acts once for each statement, with
 * the rights of the owner, so that a program that only cleans up jobs needs no others.
 */
export function logsSql({ jobs, logs, schema }: Names): string {
  const removed = `${quote(schema)}.millrace_logs_removed`
  return `CREATE TABLE IF NOT EXISTS ${logs} (
  job_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
);
CREATE OR REPLACE FUNCTION ${removed}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Most databases have no logs, and then it stops here.
  IF EXISTS (SELECT 1 FROM ${logs}) THEN
    DELETE FROM ${logs} WHERE job_id = ANY (ARRAY(SELECT gone.id::text FROM gone));
  END IF;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS millrace_logs_removed ON ${jobs};
CREATE TRIGGER millrace_logs_removed AFTER DELETE ON ${jobs} REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION ${removed}();`
}

/**
 * Adds lines to jobs that are stored, and drops the oldest that no longer fit, as `newestLines` of engine/job-logs.ts
 * chooses. The lock makes a delete of the job wait, so that its trigger sees these lines. Two holders of one job may take the
 * same numbers: then one of the statements fails, and is repeated.
 */
export const ADD_LINES = ({ jobs, logs }: Names): string => `
WITH stored AS MATERIALIZED (
  SELECT job.id::text AS id FROM ${jobs} AS job WHERE job.id::text = ANY ($2::text[]) ORDER BY job.id::text FOR KEY SHARE),
given AS MATERIALIZED (
  SELECT given.* FROM ${rowsFrom('$3::text[]', '$4::int[]', '$5::text[]')} AS given (id, place, line) JOIN stored USING (id)),
coming AS MATERIALIZED (
  SELECT id, max(place) AS places, sum(octet_length(line)) AS bytes FROM given GROUP BY id),
kept AS (
  SELECT line.job_id, line.seq, coming.places, coming.bytes, max(line.seq) OVER (PARTITION BY line.job_id) AS last,
    sum(octet_length(line.line)) OVER (PARTITION BY line.job_id ORDER BY line.seq DESC) AS total
  FROM coming JOIN ${logs} AS line ON line.job_id = coming.id),
trimmed AS (
  DELETE FROM ${logs} AS line USING kept WHERE line.job_id = kept.job_id AND line.seq = kept.seq
    AND (kept.seq <= kept.last + kept.places - $6::int OR kept.total + kept.bytes > $7::int))
INSERT INTO ${logs} (job_id, seq, line)
SELECT given.id, coalesce((SELECT max(seq) FROM ${logs} WHERE job_id = given.id), 0) + given.place, given.line
FROM given WHERE ${NOW} IS NOT NULL`

export const READ_LINES = ({ logs }: Names): string =>
  `SELECT seq::float8 AS seq, line, ${NOW} AS now FROM ${logs} WHERE job_id = $2 ORDER BY ${logs}.seq`

export function createLogs(core: PostgresCore): JobLogs {
  return {
    async append(said, { lines, bytes }) {
      const given = said.flatMap(({ job, skipped, lines: texts }) =>
        texts.map((line, index) => ({ id: job.id, place: skipped + index + 1, line })),
      )
      const args = [
        arrayOf(said.map(({ job }) => job.id)),
        arrayOf(given.map(({ id }) => id)),
        arrayOfNumbers(given.map(({ place }) => place)),
        arrayOf(given.map(({ line }) => line)),
      ]
      await core.call('logs', (database) => database.rows(ADD_LINES, ...args, lines, bytes))
    },
    read: async (id) => {
      const rows = await core.call('logs', (database) => database.rows<KeptLine>(READ_LINES, id))
      return rows.map(({ seq, line }) => ({ seq, line }))
    },
  }
}
