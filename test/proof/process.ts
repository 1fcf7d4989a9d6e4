/**
 * A process of the crew. It is started ahead and waits for its part; then it works, keeps, or performs the operations of
 * a client, and writes down what it asks and sees.
 */
import { readFinalStore } from '../../proof/check/final-store.ts'
import { recorded } from '../../proof/history/recorded-engine.ts'
import { recordTo } from '../../proof/history/recorder.ts'
import { TransactionNames } from '../../proof/workload/own-transactions.ts'
import { openEngine } from '../../src/engine/open.ts'
import { open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { Order, Part, Told } from './part.ts'
import { blockLoop, finishAll, keep, type Player, performAs, work } from './play.ts'

/** The drain time of 2 s, the 8 s that a mill may take to close, and what a busy machine adds. */
const STOP_BOUND_MS = 15_000

const stopping = new AbortController()
/** Once the store is open. */
const playing = Promise.withResolvers<Player>()
process.on('SIGTERM', () => stopping.abort())
process.on('message', (order: Order) => void obey(order).catch(fail))
// The referee is gone: nobody would ever stop this process.
process.on('disconnect', () => process.exit(1))
tell({ told: 'loaded' })

function tell(told: Told): void {
  if (process.connected) process.send?.(told)
}

async function obey(order: Order): Promise<void> {
  switch (order.order) {
    case 'play':
      return play(order.part)
    case 'block':
      return blockLoop(order.ms)
    case 'finish':
      tell({ told: 'finished', ...(await finishAll(await playing.promise, order.boundMs)) })
      return
    case 'final':
      tell({ told: 'final', final: await readFinalStore((await playing.promise).mill.engine, order.ids) })
      return
    default:
      order satisfies never
  }
}

/** The store cannot be reached, or not worked on: a supervisor would start the process again, and so does the crew. */
function fail(error: unknown): never {
  console.error(error instanceof Error ? error.stack : error)
  process.exit(1)
}

async function play(part: Part): Promise<void> {
  const { signal } = stopping
  const { name } = part
  const recorder = recordTo(part.history, name)
  signal.addEventListener('abort', () =>
    recorder.note({ what: 'process', event: 'stopping', name, boundMs: STOP_BOUND_MS }),
  )
  const names = new TransactionNames()
  const engine = await openEngine(part.url, { clock: systemClock, migrate: true })
  const mill = await open(recorded(engine, recorder, names.nameOf))
  const player = { part, mill, recorder, names, signal }
  playing.resolve(player)
  if (!signal.aborted) await (part.isAlone ? playAlone(player) : playRole(player))
  await mill.close()
  process.exit(0)
}

async function playRole(player: Player): Promise<void> {
  const { role, client } = player.part
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
      if (client !== null) await performFor(player, client)
      return untilStopping()
    default:
      role satisfies never
  }
}

/** Workers of both versions and all clients in one process. */
async function playAlone(player: Player): Promise<void> {
  const { part } = player
  const workers = [await work(player), await work({ ...player, part: { ...part, version: 2, index: 1 } })]
  tell({ told: 'ready' })
  await Promise.all(part.from.map((_, client) => performFor(player, client)))
  for (const worker of workers) await worker.stopped
}

async function performFor(player: Player, client: number): Promise<void> {
  await performAs(player, client, (operation) => tell({ told: 'at', client, operation }))
  if (!player.signal.aborted) tell({ told: 'done', client })
}

function untilStopping(): Promise<void> {
  if (stopping.signal.aborted) return Promise.resolve()
  return new Promise((resolve) => stopping.signal.addEventListener('abort', () => resolve(), { once: true }))
}
