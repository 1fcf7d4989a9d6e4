import { type Names, quote } from './names.ts'

/** The rows that show an error. Must be written as in the index, or the index is not used. */
export const HAS_ERROR = `(fail_reason IS NOT NULL OR fail_code IS NOT NULL OR error_record IS NOT NULL)`

/** The keys of live jobs have an index of their own. */
export const FINISHED = `status IN ('completed', 'failed')`

/**
 * What searches need beside the indexes that were there. Jobs without a tag, a tenant, a key and an error are in none of
 * these. The triggers keep the tags of every program's jobs, and do nothing for a job without options.
 */
export function searchingSql({ jobs, tags, schema }: Names): string {
  const tagged = `${quote(schema)}.millrace_tagged`
  return `CREATE TABLE IF NOT EXISTS ${tags} (
  tag TEXT COLLATE "C" NOT NULL,
  job_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (tag, job_id)
);
CREATE INDEX IF NOT EXISTS idx_millrace_tags_job ON ${tags} (job_id);
INSERT INTO ${tags} (tag, job_id)
SELECT DISTINCT tag.value, job.id::text FROM ${jobs} AS job
CROSS JOIN LATERAL jsonb_array_elements_text(job.options::jsonb -> 'tags') AS tag
WHERE job.options IS NOT NULL AND jsonb_typeof(job.options::jsonb -> 'tags') = 'array' ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION ${tagged}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM ${tags} WHERE job_id = OLD.id::text;
  ELSIF jsonb_typeof(NEW.options::jsonb -> 'tags') = 'array' THEN
    INSERT INTO ${tags} (tag, job_id)
    SELECT DISTINCT value, NEW.id::text FROM jsonb_array_elements_text(NEW.options::jsonb -> 'tags') ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS millrace_tagged ON ${jobs};
CREATE TRIGGER millrace_tagged AFTER INSERT ON ${jobs} FOR EACH ROW
  WHEN (NEW.options IS NOT NULL AND (NEW.options -> 'tags') IS NOT NULL) EXECUTE FUNCTION ${tagged}();
DROP TRIGGER IF EXISTS millrace_tagged_end ON ${jobs};
CREATE TRIGGER millrace_tagged_end AFTER DELETE ON ${jobs} FOR EACH ROW
  WHEN (OLD.options IS NOT NULL AND (OLD.options -> 'tags') IS NOT NULL) EXECUTE FUNCTION ${tagged}();
CREATE INDEX IF NOT EXISTS idx_jobs_tenant ON ${jobs} ((tenant ->> 'orgId'), (id::text)) WHERE tenant IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_jobs_finished_key ON ${jobs} (idempotency_key)
  WHERE idempotency_key IS NOT NULL AND ${FINISHED};
CREATE INDEX IF NOT EXISTS idx_jobs_finished_latest ON ${jobs} (latest_key) WHERE latest_key IS NOT NULL AND ${FINISHED};
CREATE INDEX IF NOT EXISTS idx_jobs_error ON ${jobs} ((id::text)) WHERE ${HAS_ERROR};`
}
