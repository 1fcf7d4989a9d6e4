/** Who is at work, which types are held back, and what an audit entry is about where that is no job. */
export const PRESENCE_AND_PAUSES = `
-- What each worker last said of each of its types, as JSON. It holds until until_ms and is kept for a day longer.
CREATE TABLE IF NOT EXISTS millrace_presence (
  worker TEXT NOT NULL,
  type TEXT NOT NULL,
  beat TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (worker, type)
) WITHOUT ROWID;

-- Types of which nothing is started.
CREATE TABLE IF NOT EXISTS millrace_pauses (
  type TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;

ALTER TABLE job_audit ADD COLUMN subject TEXT;
`
