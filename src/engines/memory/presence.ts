import { MemoryPresence } from '../../engine/memory-presence.ts'
import type { RememberingPresence } from '../../engine/presence.ts'
import type { Clock } from '../../time/clock.ts'
import type { MemoryStore } from './store.ts'

/** Engines over one store see the same workers, each by its own clock. */
export function createPresence(open: () => MemoryStore, clock: Clock): RememberingPresence {
  const here = (): MemoryPresence => new MemoryPresence(clock, open().presence)
  return {
    beat: async (beats, ttlMs) => here().beat(beats, ttlMs),
    gone: async (instance, types) => here().gone(instance, types),
    list: async () => here().list(),
    seen: async () => here().seen(),
  }
}
