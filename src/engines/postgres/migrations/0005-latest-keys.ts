/** The highest numbers of latest keys are forgotten a week after the last job of a key that could still run. */
import type { Names } from '../names.ts'

export function latestKeysSql({ latest, jobs }: Names): string {
  return `-- Since when no job of the key is there that may still run; null while there is one, or nobody has looked.
ALTER TABLE ${latest} ADD COLUMN IF NOT EXISTS idle_since TIMESTAMPTZ NULL;
CREATE INDEX IF NOT EXISTS idx_jobs_latest_failed ON ${jobs} (type, latest_key)
  WHERE latest_key IS NOT NULL AND status = 'failed';`
}
