/**
 * A process of the crew. It is started ahead and waits for its part; then it works, keeps, or performs the operations of
 * a client, and writes down what it asks and sees.
 */
import { recorded } from '../../proof/history/recorded-engine.ts'
import { type Recorder, recordTo } from '../../proof/history/recorder.ts'
import { openEngine } from '../../src/engine/open.ts'
import { type Mill, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { Order, Part, Told } from './part.ts'
import { performAs, transactionNames, workedJobs, workOptions } from './play.ts'

const stopping = new AbortController()
process.on('SIGTERM', () => stopping.abort())
process.on('message', (order: Order) => {
  switch (order.order) {
    case 'play':
      void play(order.part)
      return
    case 'block':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.ms)
      return
    default:
      order satisfies never
  }
})
// The referee is gone: nobody would ever stop this process.
process.on('disconnect', () => process.exit(1))

function tell(told: Told): void {
  if (process.connected) process.send?.(told)
}

async function play(part: Part): Promise<void> {
  const recorder = recordTo(part.history, part.name)
  stopping.signal.addEventListener('abort', () => {
    recorder.note({ what: 'process', event: 'stopping', name: part.name })
  })
  const mill = await openFor(part, recorder)
  if (!stopping.signal.aborted) await playOn(mill, part, recorder)
  await mill.close()
  process.exit(0)
}

async function openFor(part: Part, recorder: Recorder): Promise<Mill> {
  try {
    const engine = await openEngine(part.url, { clock: systemClock, migrate: true })
    return await open(recorded(engine, recorder, transactionNames.of))
  } catch (error) {
    // The store cannot be reached: a supervisor would start the process again, and so does the crew.
    console.error(`it could not open the store: ${error instanceof Error ? error.message : error}`)
    process.exit(1)
  }
}

async function playOn(mill: Mill, part: Part, recorder: Recorder): Promise<void> {
  const { role } = part
  switch (role) {
    case 'worker': {
      const worker = await mill.work(workedJobs(mill, part, recorder), workOptions(mill, part))
      tell({ told: 'ready' })
      await worker.stopped
      return
    }
    case 'keeper': {
      const keeper = await mill.keep({ interval: '500ms' })
      tell({ told: 'ready' })
      await stopped()
      await keeper.stop()
      return
    }
    case 'client':
      tell({ told: 'ready' })
      await performAs(mill, part, {
        recorder,
        signal: stopping.signal,
        onOperation: (operation) => tell({ told: 'at', operation }),
      })
      if (!stopping.signal.aborted) tell({ told: 'done' })
      await stopped()
      return
    default:
      role satisfies never
  }
}

function stopped(): Promise<void> {
  if (stopping.signal.aborted) return Promise.resolve()
  return new Promise((resolve) => stopping.signal.addEventListener('abort', () => resolve(), { once: true }))
}
