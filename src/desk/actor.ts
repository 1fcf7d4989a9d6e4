import type { Actor, DeskAction } from '../engine/dead-letters.ts'
import { OptionError } from '../errors.ts'
import { refuseUnknown } from '../job/known-options.ts'

/** A reason is needed to discard, purge or erase, and welcome otherwise. */
export type DeskActor = Pick<Actor, 'who'> & Partial<Actor>

const REMOVALS: Readonly<Partial<Record<string, string>>> = { discard: 'discarded', purge: 'purged', erase: 'erased' }

/** Every act needs `who`; acts that remove work also need a reason. */
export function checkActor(by: DeskActor, action: DeskAction | 'release'): Actor {
  refuseUnknown(by, { who: true, reason: true }, action)
  const { who, reason = '' } = by
  if (who.trim() === '') throw new OptionError(`'who' is empty; say who does this`)
  const text = reason.trim()
  const done = REMOVALS[action]
  if (text === '' && done !== undefined) throw new OptionError(`'reason' is missing; say why this is ${done}`)
  return { who: who.trim(), reason: text === '' ? action : text }
}
