/** What the processes of a round do, made from the seed of the round. */
import type { Recorder } from '../../proof/history/recorder.ts'
import { abilitiesOf } from '../../proof/workload/abilities.ts'
import type { ClientParts } from '../../proof/workload/client.ts'
import { definitionsFor, workerOptionsFor } from '../../proof/workload/definitions.ts'
import { type Finished, finish } from '../../proof/workload/finish.ts'
import { generate } from '../../proof/workload/generate.ts'
import { concurrencyOf, handlersFor } from '../../proof/workload/handlers.ts'
import type { TransactionNames } from '../../proof/workload/own-transactions.ts'
import { perform } from '../../proof/workload/perform.ts'
import type { Keeper, Mill, Worker } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { Part } from './part.ts'
import { transactionsOf } from './transactions.ts'

/** What a process plays with. */
export interface Player {
  readonly part: Part
  readonly mill: Mill
  readonly recorder: Recorder
  readonly names: TransactionNames
  /** Aborts when the process is asked to stop. */
  readonly signal: AbortSignal
}

export function blockLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** SIGKILL cannot be caught, so nothing is closed. */
function crash(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

export function work({ part, mill, recorder }: Player): Promise<Worker> {
  const abilities = abilitiesOf(mill.engine)
  const parts = { mill, recorder, clock: systemClock, crash, block: blockLoop }
  const handlers = handlersFor(definitionsFor(abilities, part.version), parts)
  const options = workerOptionsFor(abilities, part.index)
  const concurrency = concurrencyOf(handlers, options.concurrency)
  recorder.note({ what: 'process', event: 'started', name: part.name, concurrency })
  return mill.work(handlers, { ...options, signals: part.engine !== 'memory' })
}

export function keep({ part, mill }: Player): Promise<Keeper> {
  const definitions = definitionsFor(abilitiesOf(mill.engine), part.version)
  return mill.keep({ reap: '500ms', jobs: [...definitions.values()] })
}

/** Performs the operations of one client, from the first that was not begun yet. */
export async function performAs(player: Player, client: number, onBegin: (operation: number) => void): Promise<void> {
  const { part, mill } = player
  const abilities = abilitiesOf(mill.engine)
  const mayCrash = abilities.capabilities.survives !== 'nothing'
  // The same in all processes of a round.
  const program = generate({ ...part.program, abilities, mayCrash, mayBlock: true, hasTransactions: true })
  await perform(program.clients[client] ?? [], clientParts(player), { from: part.from, onBegin })
}

/** Lets go of what waits for an operator, and waits until no job is left. */
export function finishAll(player: Player, boundMs: number): Promise<Finished> {
  const signal = AbortSignal.any([player.signal, AbortSignal.timeout(Math.ceil(boundMs))])
  return finish({ ...clientParts(player), signal })
}

function clientParts({ part, mill, recorder, names, signal }: Player): ClientParts {
  const begin = transactionsOf(part.engine, part.url)
  const parts = { mill, abilities: abilitiesOf(mill.engine), recorder, clock: systemClock, signal }
  return begin === null ? parts : { ...parts, transactions: { begin, names } }
}
