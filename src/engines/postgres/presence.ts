import { type BeatRow, decodeBeat, encodeBeat, type SeenRow } from '../../engine/beats.ts'
import { type RememberingPresence, SEEN_MS } from '../../engine/presence.ts'
import type { PostgresCore } from './core.ts'
import { arrayOf } from './driver.ts'
import { BEAT, FORGET_WORKERS, LEAVE, LIST_BEATS, LIST_SEEN } from './presence-statements.ts'

export function createPresence(core: PostgresCore): RememberingPresence {
  return {
    beat: (beats, ttlMs) =>
      core.call('beat', async (database) => {
        const rows = beats.map((beat) => ({
          worker: beat.instance,
          type: beat.type,
          beat: encodeBeat(beat),
          at_ms: beat.atMs,
        }))
        await database.rows(BEAT, ttlMs, JSON.stringify(rows))
        await database.rows(FORGET_WORKERS, SEEN_MS)
      }),
    gone: (worker, types) =>
      core.call('goodbye', async (database) => void (await database.rows(LEAVE, worker, arrayOf(types)))),
    list: () =>
      core.call('workers', async (database) => {
        const rows = await database.rows<BeatRow>(LIST_BEATS)
        return rows.flatMap(({ worker, type, beat }) => decodeBeat({ instance: worker, type }, beat) ?? [])
      }),
    seen: () =>
      core.call('workers', async (database) => {
        const rows = await database.rows<SeenRow>(LIST_SEEN, SEEN_MS)
        return rows.map(({ worker, type, at_ms }) => ({ instance: worker, type, atMs: at_ms }))
      }),
  }
}
