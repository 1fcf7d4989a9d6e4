import type { Presence } from '../../src/observe/index.ts'

/**
 * A presence in which a worker goes by its own name. Three workers read `escrow.commands`; by the type of their jobs
 * alone nobody could tell which of them is missing.
 *
 * @example
 * attachPresence(mill, { presence: presenceAs('payout-executor', presence) })
 */
export function presenceAs(worker: string, presence: Presence): Presence {
  return {
    beat: (beats, ttlMs) =>
      presence.beat(
        beats.map((beat) => ({ ...beat, type: worker })),
        ttlMs,
      ),
    gone: (instance) => presence.gone(instance, [worker]),
    list: () => presence.list(),
  }
}
