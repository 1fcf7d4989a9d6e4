/**
 * By which clock the times in the file were written. All processes of a machine share its monotonic clock; offset_ms is
 * what the wall clock is ahead of it, so that whoever finds another difference knows that the clock was set.
 */
export const CLOCK = `
CREATE TABLE IF NOT EXISTS millrace_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  timeline TEXT NOT NULL,
  offset_ms REAL NOT NULL,
  stepped_at_ms INTEGER,
  step_ms INTEGER
);
`
