import { recorded } from '../../proof/history/recorded-engine.ts'
import { recordTo } from '../../proof/history/recorder.ts'
import { TransactionNames } from '../../proof/workload/own-transactions.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { open } from '../../src/index.ts'
import type { Part, Told } from './part.ts'
import { finishAll, keep, type Player, performAs, work } from './play.ts'

/** The drain time of 2 s, the 8 s that a mill may take to close, and what a busy machine adds. */
const STOP_BOUND_MS = 15_000

/** Where a part is played: in a process of its own, or beside others in the process that has the store. */
export interface Place {
  openEngine(): Promise<Engine>
  /** Aborts when it is asked to stop. */
  readonly signal: AbortSignal
  tell(told: Told): void
}

/**
 * Works, keeps, or performs the operations of a client, and writes down what it asks and sees. Resolves when it was asked
 * to stop and has. Rejects when the store cannot be reached or worked on.
 */
export async function playPart(part: Part, place: Place): Promise<void> {
  const { signal } = place
  const recorder = recordTo(part.history, part.name)
  const { name } = part
  signal.addEventListener('abort', () =>
    recorder.note({ what: 'process', event: 'stopping', name, boundMs: STOP_BOUND_MS }),
  )
  const names = new TransactionNames()
  const mill = await open(recorded(await place.openEngine(), recorder, names.nameOf))
  if (!signal.aborted) await playOn({ part, mill, recorder, names, signal }, place)
  await mill.close()
}

async function playOn(player: Player, { tell }: Place): Promise<void> {
  const { signal } = player
  const { role, client, finishMs } = player.part
  switch (role) {
    case 'worker': {
      const worker = await work(player)
      tell({ told: 'ready' })
      // Closing the mill stops the worker, whose handlers may still enqueue meanwhile.
      return Promise.race([worker.stopped, untilAborted(signal)])
    }
    case 'keeper': {
      const keeper = await keep(player)
      tell({ told: 'ready' })
      await untilAborted(signal)
      return keeper.stop()
    }
    case 'client':
      tell({ told: 'ready' })
      if (finishMs !== null) tell({ told: 'finished', ...(await finishAll(player, finishMs)) })
      if (client !== null) {
        await performAs(player, client, (operation) => tell({ told: 'at', operation }))
        if (!signal.aborted) tell({ told: 'done' })
      }
      return untilAborted(signal)
    default:
      role satisfies never
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
