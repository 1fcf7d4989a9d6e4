/** The statements of presence and of pauses; all others are in statements.ts. */

/** All types of a worker at once: `:beats` is a JSON array. */
export const BEAT = `
INSERT INTO millrace_presence (worker, type, beat, at_ms, until_ms)
SELECT value ->> 'worker', value ->> 'type', value ->> 'beat', value ->> 'atMs', :until FROM json_each(:beats) WHERE true
ON CONFLICT (worker, type) DO UPDATE SET beat = excluded.beat, at_ms = excluded.at_ms, until_ms = excluded.until_ms`

export const FORGET_WORKERS = `DELETE FROM millrace_presence WHERE until_ms < :before`

export const LEAVE = `
DELETE FROM millrace_presence WHERE worker = :worker AND type IN (SELECT value FROM json_each(:types))`

export const LIST_BEATS = `SELECT worker, type, beat FROM millrace_presence WHERE until_ms > :now ORDER BY worker, type`

export const LIST_SEEN = `SELECT worker, type, at_ms FROM millrace_presence WHERE until_ms >= :since ORDER BY worker, type`

export const PAUSE = `
INSERT INTO millrace_pauses (type, who, reason, since_ms) VALUES (:type, :who, :reason, :now) ON CONFLICT DO NOTHING`
export const RESUME = `DELETE FROM millrace_pauses WHERE type = :type`
export const LIST_PAUSES = `SELECT type, who, reason, since_ms FROM millrace_pauses ORDER BY type`
