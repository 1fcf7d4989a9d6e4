/** Enqueues jobs without end, one after the other, until SIGTERM: `producer.ts <orders>`. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EnqueueOptions, open } from 'millrace'
import { type Deed, note, noteError, orders, rolling, tell } from './lines.ts'

/** Numbers from 0 to 1 that depend on the seed and on which job it is. */
function drawn(n: number): readonly number[] {
  return [...createHash('sha256').update(`${orders.seed}/${n}`).digest()].map((byte) => byte / 256)
}

const deedOf = (chance: number): Deed => (chance < 0.05 ? 'die' : chance < 0.15 ? 'retry' : 'complete')

const mill = await open(orders.url)
const { order, enqueueDelayMaxMs, dependencies } = mill.engine.capabilities
let isStopping = false
process.once('SIGTERM', () => {
  isStopping = true
})
tell('ready')
/** The last one that will complete; another may come after it. */
let previous: string | null = null
for (let n = 0; !isStopping; n += 1) {
  const [which = 0, length = 0, importance = 0, delayed = 0, follows = 0, pause = 0] = drawn(n)
  const deed = deedOf(which)
  const options: EnqueueOptions = {
    key: `${orders.name}-${n}`,
    ...(order !== 'per-key' && { priority: 1 + Math.floor(importance * 10) }),
    ...(delayed < 0.1 && enqueueDelayMaxMs > 0 && { delay: 300 }),
    ...(follows < 0.1 && previous !== null && dependencies && !orders.plain && { after: [previous] }),
  }
  try {
    const { id }: { id: string } = await mill.enqueue(rolling, { deed, ms: Math.round(length * 30) }, options)
    note({ what: 'acknowledged', id, deed })
    if (deed !== 'die') previous = id
    tell('progress')
  } catch (error) {
    noteError('refused', error)
  }
  await sleep(pause * 4)
}
await mill.close()
process.disconnect()
