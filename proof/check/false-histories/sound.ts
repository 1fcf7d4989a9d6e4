/** A run of the workload on the memory engine in this process, recorded: what false histories are made from. */
import { open } from '../../../src/client/mill.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { MemoryEngine } from '../../../src/engines/memory/engine.ts'
import { MemoryStore } from '../../../src/engines/memory/store.ts'
import { systemClock } from '../../../src/time/clock.ts'
import type { Entry } from '../../history/entry.ts'
import { recorded } from '../../history/recorded-engine.ts'
import { Recorder } from '../../history/recorder.ts'
import { abilitiesOf } from '../../workload/abilities.ts'
import { definitionsFor, workerOptionsFor } from '../../workload/definitions.ts'
import { finish } from '../../workload/finish.ts'
import { generate } from '../../workload/generate.ts'
import { handlersFor } from '../../workload/handlers.ts'
import { perform } from '../../workload/perform.ts'
import type { Facts } from '../check.ts'
import { readFinalStore } from '../final-store.ts'
import { idsOf } from '../gather.ts'

const BOUND_MS = 30_000

/** Two workers and two clients, each an engine of its own over one store, as processes over a database. */
export async function recordSound(seed: number, jobs: number, density: number): Promise<Facts> {
  const store = new MemoryStore({ finishedMax: Number.POSITIVE_INFINITY })
  const history: Entry[] = []
  const recorderOf = (by: string): Recorder => new Recorder(by, (entry) => void history.push(entry))
  const engineFor = (recorder: Recorder): Engine => recorded(new MemoryEngine({ store }), recorder)
  const direct = new MemoryEngine({ store })
  const abilities = abilitiesOf(direct)
  const signal = new AbortController().signal
  const referee = recorderOf('referee')
  const workers = await Promise.all(
    [1, 2].map(async (number, index) => {
      const recorder = recorderOf(`worker-${number}`)
      const mill = await open(engineFor(recorder))
      const crash = (): Promise<never> => new Promise(() => {})
      const parts = { mill, recorder, clock: systemClock, crash, block: () => {} }
      const options = workerOptionsFor(abilities, index)
      const concurrency = { '': options.concurrency ?? 10, narrow: 2 }
      referee.note({ what: 'process', event: 'started', name: recorder.by, concurrency })
      await mill.work(handlersFor(definitionsFor(abilities, 2), parts), options)
      return { mill, name: recorder.by }
    }),
  )
  const program = generate({ seed, abilities, jobs, clients: 2, density })
  const clients = await Promise.all(
    program.clients.map(async (operations, index) => {
      const recorder = recorderOf(`client-${index + 1}`)
      const mill = await open(engineFor(recorder))
      return { operations, parts: { mill, abilities, recorder, clock: systemClock, signal } }
    }),
  )
  await Promise.all(clients.map(({ operations, parts }) => perform(operations, parts)))
  referee.note({ what: 'calm', boundMs: BOUND_MS })
  const [last] = clients
  if (last !== undefined && (await finish(last.parts)).isFinished) referee.note({ what: 'finished' })
  for (const { mill, name } of workers) {
    referee.note({ what: 'process', event: 'stopping', name, boundMs: 10_000 })
    await mill.close()
    referee.note({ what: 'process', event: 'exited', name, how: '0' })
  }
  for (const { parts } of clients) await parts.mill.close()
  const final = await readFinalStore(direct, idsOf(history))
  return { history, final, capabilities: direct.capabilities }
}
