import type { Counts } from '../engine/engine.ts'
import type { Beat } from '../engine/presence.ts'

/**
 * Jobs that could start now, by type, where no worker runs the type and it is not paused. None where the workers are not
 * known. Pauses that are not known count as none: then too much is reported, not too little.
 */
export async function unclaimedOf(
  counts: Counts,
  beats: Promise<readonly Beat[]>,
  paused?: () => Promise<readonly string[]>,
): Promise<Readonly<Record<string, number>>> {
  const known = await beats.catch(() => null)
  if (known === null) return {}
  const running = known.filter(({ status }) => status === 'RUNNING').map(({ type }) => type)
  const waiting = Object.entries(counts).filter(([type, { ready }]) => ready > 0 && !running.includes(type))
  if (waiting.length === 0) return {}
  const held = (await paused?.().catch(() => [])) ?? []
  return Object.fromEntries(waiting.flatMap(([type, { ready }]) => (held.includes(type) ? [] : [[type, ready]])))
}
