import { openDesk } from '../../../src/desk/desk.ts'
import type { Log } from '../../../src/job/definition.ts'
import type { Duty } from '../../../src/keeper/side-duties.ts'
import { type EntryVersion, readVersion } from '../entry.ts'
import { EMBED_TYPE } from '../generate.ts'
import type { EmbeddingService } from './queue.ts'

/** The newest; what is left beyond them is old enough for a person to look at. */
const LETTERS_MAX = 1_000
const BY_QUEUE = { who: 'embedding-queue', reason: 'a version that is not older is stored' }

/** Discards the dead letters of entries whose vector is by now of that version or a newer one, as the queue in memory does. */
export function obsoleteLetters(service: EmbeddingService, log: Log): Duty {
  return {
    name: 'obsolete-letters',
    every: '1m',
    async run() {
      if (service.mill === null) return
      const desk = openDesk(service.mill)
      const letters = (await desk.list({ type: EMBED_TYPE, limit: LETTERS_MAX })).flatMap(({ job }) => {
        const version = versionIn(job.payload)
        return version === null ? [] : [{ id: job.id, version }]
      })
      if (letters.length === 0) return
      const stored = await service.store.stored(letters.map(({ version }) => version))
      const ids = letters.flatMap(({ id, version }, index) => ((stored[index]?.seq ?? 0) >= version.seq ? [id] : []))
      if (ids.length === 0) return
      const { done } = await desk.discard({ ids }, BY_QUEUE)
      log.info('Dead letters of stored entries were discarded', { count: done })
    },
  }
}

function versionIn(payload: string): EntryVersion | null {
  try {
    return readVersion(payload)
  } catch {
    return null
  }
}
