import { type BeatRow, decodeBeat, encodeBeat, type SeenRow } from '../../engine/beats.ts'
import { type RememberingPresence, SEEN_MS } from '../../engine/presence.ts'
import type { SqliteCore } from './core.ts'
import { BEAT, FORGET_WORKERS, LEAVE, LIST_BEATS, LIST_SEEN } from './presence-statements.ts'

/** A power cut ends every worker too, so nothing here waits for the disk. */
export function createPresence(core: SqliteCore): RememberingPresence {
  const { connection, clock } = core
  return {
    beat: (beats, ttlMs) =>
      core.writeVolatile('beat', () => {
        const now = clock.nowMs()
        const rows = beats.map((beat) => ({
          worker: beat.instance,
          type: beat.type,
          beat: encodeBeat(beat),
          atMs: beat.atMs,
        }))
        connection.prepare(BEAT).run({ beats: JSON.stringify(rows), until: now + ttlMs })
        connection.prepare(FORGET_WORKERS).run({ before: now - SEEN_MS })
      }),
    gone: (worker, types) =>
      core.writeVolatile('goodbye', () => void connection.prepare(LEAVE).run({ worker, types: JSON.stringify(types) })),
    list: () =>
      core.read('workers', () => {
        const rows = connection.prepare(LIST_BEATS).all({ now: clock.nowMs() }) as BeatRow[]
        return rows.flatMap(({ worker, type, beat }) => decodeBeat({ instance: worker, type }, beat) ?? [])
      }),
    seen: () =>
      core.read('workers', () => {
        const rows = connection.prepare(LIST_SEEN).all({ since: clock.nowMs() - SEEN_MS }) as SeenRow[]
        return rows.map(({ worker, type, at_ms }) => ({ instance: worker, type, atMs: at_ms }))
      }),
  }
}
