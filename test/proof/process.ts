/**
 * A process of the crew. It is started ahead and waits for its part; then it works, keeps, or performs the operations of
 * a client, and writes down what it asks and sees.
 */
import { recorded } from '../../proof/history/recorded-engine.ts'
import { recordTo } from '../../proof/history/recorder.ts'
import { TransactionNames } from '../../proof/workload/own-transactions.ts'
import { openEngine } from '../../src/engine/open.ts'
import { open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { Order, Part, Told } from './part.ts'
import { blockLoop, finishAll, keep, type Player, performAs, work } from './play.ts'

const stopping = new AbortController()
process.on('SIGTERM', () => stopping.abort())
process.on('message', (order: Order) => {
  switch (order.order) {
    case 'play':
      void play(order.part)
      return
    case 'block':
      blockLoop(order.ms)
      return
    default:
      order satisfies never
  }
})
// The referee is gone: nobody would ever stop this process.
process.on('disconnect', () => process.exit(1))
tell({ told: 'loaded' })

function tell(told: Told): void {
  if (process.connected) process.send?.(told)
}

async function play(part: Part): Promise<void> {
  const { signal } = stopping
  const recorder = recordTo(part.history, part.name)
  signal.addEventListener('abort', () => recorder.note({ what: 'process', event: 'stopping', name: part.name }))
  const names = new TransactionNames()
  const mill = await openEngine(part.url, { clock: systemClock, migrate: true })
    .then((engine) => open(recorded(engine, recorder, names.nameOf)))
    .catch(fail)
  if (!signal.aborted) await playOn({ part, mill, recorder, names, signal }).catch(fail)
  await mill.close()
  process.exit(0)
}

/** The store cannot be reached, or not worked on: a supervisor would start the process again, and so does the crew. */
function fail(error: unknown): never {
  console.error(error instanceof Error ? error.stack : error)
  process.exit(1)
}

async function playOn(player: Player): Promise<void> {
  const { role, client, finishMs } = player.part
  switch (role) {
    case 'worker': {
      const worker = await work(player)
      tell({ told: 'ready' })
      return worker.stopped
    }
    case 'keeper': {
      const keeper = await keep(player)
      tell({ told: 'ready' })
      await untilStopping()
      return keeper.stop()
    }
    case 'client':
      tell({ told: 'ready' })
      if (finishMs !== null) tell({ told: 'finished', ...(await finishAll(player, finishMs)) })
      if (client !== null) {
        await performAs(player, client, (operation) => tell({ told: 'at', operation }))
        if (!player.signal.aborted) tell({ told: 'done' })
      }
      return untilStopping()
    default:
      role satisfies never
  }
}

function untilStopping(): Promise<void> {
  if (stopping.signal.aborted) return Promise.resolve()
  return new Promise((resolve) => stopping.signal.addEventListener('abort', () => resolve(), { once: true }))
}
