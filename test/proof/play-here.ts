/** Plays a program in this process, without faults: clients, workers of both versions and the end of the round. */
import { check, type Facts, type Verdict } from '../../proof/check/check.ts'
import { readFinalStore } from '../../proof/check/final-store.ts'
import { idsOf } from '../../proof/check/gather.ts'
import type { Entry } from '../../proof/history/entry.ts'
import { recorded } from '../../proof/history/recorded-engine.ts'
import { Recorder, timesOf } from '../../proof/history/recorder.ts'
import { type Abilities, abilitiesOf } from '../../proof/workload/abilities.ts'
import type { ClientParts } from '../../proof/workload/client.ts'
import { definitionsFor, type Version, workerOptionsFor } from '../../proof/workload/definitions.ts'
import { type Finished, finish } from '../../proof/workload/finish.ts'
import { type ForeignOperation, type Producer, performForeign } from '../../proof/workload/foreign.ts'
import { concurrencyOf, handlersFor } from '../../proof/workload/handlers.ts'
import type { Program } from '../../proof/workload/operation.ts'
import { type BeginTransaction, TransactionNames } from '../../proof/workload/own-transactions.ts'
import { perform } from '../../proof/workload/perform.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { type Mill, open } from '../../src/index.ts'
import type { Clock } from '../../src/time/clock.ts'

export interface PlayHere {
  /** Another view of the same data each time. */
  readonly openEngine: () => Promise<Engine>
  readonly clock: Clock
  readonly program: (abilities: Abilities) => Program
  readonly begin?: BeginTransaction
  readonly producers?: readonly Producer[]
  readonly foreign?: readonly ForeignOperation[]
  readonly boundMs: number
}

export interface PlayedHere extends Finished {
  readonly facts: Facts
  readonly verdict: Verdict
}

/** Workers of the older version leave when all clients are done, as in an upgrade. */
const WORKERS: readonly Version[] = [1, 2, 2]
const NEVER = new AbortController().signal

export async function playHere(play: PlayHere): Promise<PlayedHere> {
  const here = new Here(play)
  try {
    return await here.play()
  } finally {
    await here.close()
  }
}

interface Own {
  readonly mill: Mill
  readonly recorder: Recorder
}

async function stop({ mill, recorder }: Own): Promise<void> {
  const name = recorder.by
  recorder.note({ what: 'process', event: 'stopping', name })
  await mill.close()
  recorder.note({ what: 'process', event: 'exited', name, how: '0' })
}

class Here {
  readonly #play: PlayHere
  readonly #history: Entry[] = []
  readonly #players: Own[] = []
  readonly #names = new TransactionNames()
  readonly #times: ReturnType<typeof timesOf>

  constructor(play: PlayHere) {
    this.#play = play
    this.#times = timesOf(play.clock)
  }

  async play(): Promise<PlayedHere> {
    const { clock, foreign = [], producers = [] } = this.#play
    const referee = await this.#open('referee')
    const { recorder, mill } = referee
    const abilities = abilitiesOf(mill.engine)
    const { clients } = this.#play.program(abilities)
    const older = await this.#startWorkers(abilities)
    await Promise.all([
      ...clients.map(async (operations, index) =>
        perform(operations, this.#parts(await this.#open(`client-${index}`), abilities)),
      ),
      performForeign(foreign, producers, { recorder, clock, signal: NEVER }),
    ])
    for (const one of older) await stop(one)
    const finished = await this.#finish(referee, abilities)
    for (const one of this.#players) if (one.mill !== mill) await stop(one)
    const final = await readFinalStore(mill.engine, idsOf(this.#history))
    const facts = { history: this.#history, final, capabilities: abilities.capabilities }
    return { ...finished, facts, verdict: check(facts) }
  }

  async close(): Promise<void> {
    for (const { mill } of this.#players) await mill.close()
  }

  async #open(by: string): Promise<Own> {
    const { clock, openEngine } = this.#play
    const recorder = new Recorder(by, (entry) => void this.#history.push(entry), this.#times)
    const mill = await open(recorded(await openEngine(), recorder, this.#names.nameOf), { clock })
    const own = { mill, recorder }
    this.#players.push(own)
    return own
  }

  async #startWorkers(abilities: Abilities): Promise<readonly Own[]> {
    const older: Own[] = []
    for (const [index, version] of WORKERS.entries()) {
      const own = await this.#open(`worker-${index}`)
      const { mill, recorder } = own
      const crash = (): Promise<never> => Promise.reject(new Error('nothing crashes here'))
      const parts = { mill, recorder, clock: this.#play.clock, crash, block: () => {} }
      const handlers = handlersFor(definitionsFor(abilities, version), parts)
      const options = workerOptionsFor(abilities, index)
      const concurrency = concurrencyOf(handlers, options.concurrency)
      recorder.note({ what: 'process', event: 'started', name: recorder.by, concurrency })
      await mill.work(handlers, options)
      if (version === 1) older.push(own)
    }
    return older
  }

  #parts({ mill, recorder }: Own, abilities: Abilities): ClientParts {
    const { clock, begin } = this.#play
    const transactions = begin === undefined ? {} : { transactions: { begin, names: this.#names } }
    return { mill, recorder, abilities, clock, signal: NEVER, ...transactions }
  }

  async #finish(referee: Own, abilities: Abilities): Promise<Finished> {
    const { clock, boundMs } = this.#play
    referee.recorder.note({ what: 'calm', boundMs })
    const bound = new AbortController()
    const cancel = clock.after(boundMs, () => bound.abort())
    const finished = await finish({ ...this.#parts(referee, abilities), signal: bound.signal })
    cancel()
    if (finished.isFinished) referee.recorder.note({ what: 'finished' })
    return finished
  }
}
