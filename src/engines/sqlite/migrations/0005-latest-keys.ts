/** Since when no job of a latest key is there that may still run; null while there is one, or nobody has looked. */
export const LATEST_IDLE = `
ALTER TABLE job_latest ADD COLUMN idle_since TEXT;
`
