/** The engines of this package as a simulation plays on them. */
import { DatabaseSync } from 'node:sqlite'
import type { Engine } from '../../src/engine/engine.ts'
import { MemoryEngine, MemoryStore } from '../../src/engines/memory/index.ts'
import { SqliteEngine } from '../../src/engines/sqlite/engine.ts'
import { replaced } from '../../src/testing/replaced.ts'
import type { Clock } from '../../src/time/clock.ts'

/** One store with nothing in it. Its engines must take the time from the clock alone, and no turn to chance. */
export interface SimulatedStore {
  /** An engine of its own for a process. */
  open(): Promise<Engine>
  /** Turns of the event loop that the engine may take without a sign before it goes on, if more than two. */
  readonly quietTurns?: number
  /** All processes have the same engine, which stays open when one of them closes it. */
  readonly isShared?: boolean
  /** The clock was set. An engine that would notice it by real time must notice it now. */
  clockSet?(): void
  destroy(): Promise<void>
}

export type CreateStore = (clock: Clock) => Promise<SimulatedStore>

export const memoryStore: CreateStore = async (clock) => {
  const store = new MemoryStore()
  return { open: async () => new MemoryEngine({ clock, store }), destroy: async () => {} }
}

/** All processes share one connection, because an engine looks for changes by other connections in real time. */
export const sqliteStore: CreateStore = async (clock) => {
  const database = new DatabaseSync(':memory:')
  const engine = await SqliteEngine.connect({ database: alone(database) }, { clock, migrate: true })
  const shared = replaced(engine, new Map<PropertyKey, unknown>([['close', async () => {}]]))
  return {
    open: async () => shared,
    isShared: true,
    // A claim that is woken reads, waits for the next transaction, and may find that one cut short on a slow machine.
    quietTurns: 7,
    // Every write follows the clock first, and wakes the claims that wait.
    clockSet: () => void engine.records.remove('schedule', ['no such schedule']),
    destroy: async () => {
      await engine.close()
      database.close()
    },
  }
}

/** No other connection writes to it, so the engine need not look for changes by real time. */
function alone(database: DatabaseSync): DatabaseSync {
  const prepare = (sql: string): unknown =>
    sql === 'PRAGMA data_version' ? { get: () => ({ data_version: -1 }) } : database.prepare(sql)
  return replaced(database, new Map<PropertyKey, unknown>([['prepare', prepare]]))
}
