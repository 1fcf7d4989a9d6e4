/** The process that has a store in its memory, and plays all parts of a round on it. */
import { type FinalStore, readFinalStore } from '../../proof/check/final-store.ts'
import { MemoryEngine } from '../../src/engines/memory/engine.ts'
import { MemoryStore } from '../../src/engines/memory/store.ts'
import type { Order, Told } from './part.ts'
import { blockLoop } from './play.ts'
import { playPart } from './play-part.ts'

/** More than a round has: by default the oldest finished jobs are dropped, and the checker would call them lost. */
const FINISHED_MAX = 1_000_000

/** `to`: which of the parts that are played here. */
export type MemoryOrder =
  | { readonly to: number; readonly order: Order }
  | { readonly to: number; readonly stop: true }
  | { readonly read: readonly string[] }

export type MemoryTold =
  | { readonly from: number; readonly told: Told }
  | { readonly from: number; readonly exit: number }
  | { readonly final: FinalStore }

const store = new MemoryStore({ finishedMax: FINISHED_MAX })
const stopping = new Map<number, AbortController>()

process.on('message', (message: MemoryOrder) => {
  if ('read' in message) void read(message.read)
  else if ('stop' in message) stoppingOf(message.to).abort()
  else obey(message.to, message.order)
})
process.on('disconnect', () => process.exit(1))

function obey(to: number, order: Order): void {
  switch (order.order) {
    case 'play': {
      const openEngine = async () => new MemoryEngine({ store })
      const { signal } = stoppingOf(to)
      const end = (exit: number): void => tell({ from: to, exit })
      playPart(order.part, { openEngine, signal, tell: (told) => tell({ from: to, told }) }).then(
        () => end(0),
        (error: unknown) => {
          console.error(error)
          end(1)
        },
      )
      return
    }
    case 'block':
      blockLoop(order.ms)
      return
    default:
      order satisfies never
  }
}

async function read(ids: readonly string[]): Promise<void> {
  const engine = new MemoryEngine({ store })
  tell({ final: await readFinalStore(engine, ids) })
  await engine.close()
}

function stoppingOf(part: number): AbortController {
  const known = stopping.get(part) ?? new AbortController()
  stopping.set(part, known)
  return known
}

function tell(told: MemoryTold): void {
  if (process.connected) process.send?.(told)
}
