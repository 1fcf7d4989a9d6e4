import type { Presence } from '../../src/observe/index.ts'

/**
 * A presence that knows a worker by its name. Three workers read `escrow.commands`, and the type of their jobs alone
 * would not tell which of them is missing.
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
