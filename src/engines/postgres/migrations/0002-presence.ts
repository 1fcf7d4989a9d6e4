/** Who is at work, which types are held back, and what an audit entry is about where that is no job. */
import type { Names } from '../names.ts'

export function presenceSql({ presence, pauses, audit }: Names): string {
  return `-- What each worker last said of each of its types, as JSON. It holds until expires_at and is kept for a day longer.
CREATE TABLE IF NOT EXISTS ${presence} (
  worker TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  beat TEXT NOT NULL,
  beat_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (worker, type)
);

-- Types of which nothing is started.
CREATE TABLE IF NOT EXISTS ${pauses} (
  type TEXT COLLATE "C" PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since TIMESTAMPTZ NOT NULL
);

ALTER TABLE ${audit} ADD COLUMN IF NOT EXISTS subject TEXT NULL;`
}
