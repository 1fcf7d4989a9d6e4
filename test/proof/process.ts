/** A process of the crew. It is started ahead and waits for its part. */
import { openEngine } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { type Order, type Part, STORE_AWAY, type Told } from './part.ts'
import { blockLoop } from './play.ts'
import { playPart } from './play-part.ts'

const stopping = new AbortController()
process.on('SIGTERM', () => stopping.abort())
process.on('message', (order: Order) => {
  switch (order.order) {
    case 'play':
      play(order.part).then(() => process.exit(0), fail)
      return
    case 'block':
      blockLoop(order.ms)
      return
    default:
      order satisfies never
  }
})
// The referee is gone, and nothing else would stop this process.
process.on('disconnect', () => process.exit(1))
tell({ told: 'loaded' })

function tell(told: Told): void {
  if (process.connected) process.send?.(told)
}

function play(part: Part): Promise<void> {
  const open = () => openEngine(part.url, { clock: systemClock, migrate: true })
  return playPart(part, { openEngine: open, signal: stopping.signal, tell })
}

/** The store cannot be reached, or not worked on: a supervisor would start the process again, and so does the crew. */
function fail(error: unknown): never {
  console.error(error instanceof Error ? error.stack : error)
  process.exit(STORE_AWAY)
}
