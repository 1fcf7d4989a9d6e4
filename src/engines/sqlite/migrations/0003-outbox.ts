/** Jobs that wait for a keeper to hand them on to another engine. */
export const OUTBOX = `
CREATE TABLE IF NOT EXISTS millrace_outbox (
  seq INTEGER PRIMARY KEY,
  outbox TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  added_at_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_millrace_outbox_order ON millrace_outbox(outbox, seq);
`
