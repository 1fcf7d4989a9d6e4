/** Plays a program in this process, without faults: clients, workers of both versions and the end of the round. */
import { check, type Verdict } from '../../proof/check/check.ts'
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
import { handlersFor } from '../../proof/workload/handlers.ts'
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
  readonly verdict: Verdict
  readonly history: readonly Entry[]
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

class Here {
  readonly #play: PlayHere
  readonly #history: Entry[] = []
  readonly #mills: Mill[] = []
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
    for (const one of older) await one.close()
    const finished = await this.#finish(referee, abilities)
    for (const one of this.#mills) if (one !== mill) await one.close()
    const final = await readFinalStore(mill.engine, idsOf(this.#history))
    const verdict = check({ history: this.#history, final, capabilities: abilities.capabilities })
    return { ...finished, verdict, history: this.#history }
  }

  async close(): Promise<void> {
    for (const mill of this.#mills) await mill.close()
  }

  async #open(by: string): Promise<Own> {
    const { clock, openEngine } = this.#play
    const recorder = new Recorder(by, (entry) => void this.#history.push(entry), this.#times)
    const mill = await open(recorded(await openEngine(), recorder, this.#names.nameOf), { clock })
    this.#mills.push(mill)
    return { mill, recorder }
  }

  async #startWorkers(abilities: Abilities): Promise<readonly Mill[]> {
    const older: Mill[] = []
    for (const [index, version] of WORKERS.entries()) {
      const { mill, recorder } = await this.#open(`worker-${index}`)
      const crash = (): Promise<never> => Promise.reject(new Error('nothing crashes here'))
      const parts = { mill, recorder, clock: this.#play.clock, crash, block: () => {} }
      await mill.work(handlersFor(definitionsFor(abilities, version), parts), workerOptionsFor(abilities, index))
      if (version === 1) older.push(mill)
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
