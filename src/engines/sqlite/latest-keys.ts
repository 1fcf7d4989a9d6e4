import { LATEST_IDLE_MS } from '../../engine/retention.ts'
import { toIso } from '../../time/iso.ts'
import type { SqliteCore } from './core.ts'
import { FIND_LATEST_KEY, FORGET_LATEST, MARK_LATEST, WALK_LATEST } from './retention-statements.ts'

interface Walked {
  readonly type: string
  readonly latest_key: string
  readonly idle_since: string | null
  readonly used: 0 | 1
}

const PORTION = 250

/**
 * Forgets the highest numbers of latest keys that nobody has used for a week: an older version is refused until then,
 * also after the newer one was removed (I4). One call looks at a portion, and answers whether there are more.
 */
export function latestKeys(core: SqliteCore): { readonly forgetIdle: () => Promise<boolean> } {
  let after = { type: '', latestKey: '' }
  return {
    async forgetIdle() {
      const walked = await core.read('latest keys', () => walk(core, after))
      const last = walked.length < PORTION ? undefined : walked.at(-1)
      after = { type: last?.type ?? '', latestKey: last?.latest_key ?? '' }
      const nowMs = core.clock.nowMs()
      if (walked.some((key) => next(key, nowMs) !== key.idle_since)) {
        await core.writeVolatile('latest keys', () => {
          for (const { type, latest_key: latestKey } of walked) review(core, { type, latestKey }, nowMs)
        })
      }
      return last !== undefined
    },
  }
}

function walk({ connection }: SqliteCore, after: { readonly type: string; readonly latestKey: string }): Walked[] {
  return connection.prepare(WALK_LATEST).all({ ...after, max: PORTION }) as unknown as Walked[]
}

/** Since when it is idle, as it is to be noted; null while it is used, 'forget' when that was long ago. */
function next({ used, idle_since: since }: Walked, nowMs: number): string | null {
  if (used === 1) return null
  if (since === null) return toIso(nowMs)
  return since <= toIso(nowMs - LATEST_IDLE_MS) ? 'forget' : since
}

/** Looks again: a newer version may have come meanwhile. Inside a write transaction. */
function review({ connection }: SqliteCore, key: { readonly type: string; readonly latestKey: string }, nowMs: number) {
  const found = connection.prepare(FIND_LATEST_KEY).get(key) as unknown as Walked | undefined
  if (found === undefined) return
  const idleSince = next(found, nowMs)
  if (idleSince === 'forget') connection.prepare(FORGET_LATEST).run({ ...key })
  else if (idleSince !== found.idle_since) connection.prepare(MARK_LATEST).run({ ...key, idleSince })
}
