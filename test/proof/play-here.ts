/** Plays a program in this process, without faults: clients, workers of both versions and the end of the round. */
import { check, type Verdict } from '../../proof/check/check.ts'
import { readFinalStore } from '../../proof/check/final-store.ts'
import { idsOf } from '../../proof/check/gather.ts'
import type { Entry } from '../../proof/history/entry.ts'
import { recorded } from '../../proof/history/recorded-engine.ts'
import { Recorder, timesOf } from '../../proof/history/recorder.ts'
import { type Abilities, abilitiesOf } from '../../proof/workload/abilities.ts'
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
  /** Versions of the workers. The last ones stay when all clients are done, as after an upgrade. */
  readonly workers?: readonly Version[]
  readonly boundMs: number
}

export interface PlayedHere extends Finished {
  readonly verdict: Verdict
  readonly history: readonly Entry[]
}

export async function playHere(play: PlayHere): Promise<PlayedHere> {
  const { clock, workers = [1, 2, 2], begin, boundMs } = play
  const history: Entry[] = []
  const mills: Mill[] = []
  const names = new TransactionNames()
  const times = timesOf(clock)
  const start = async (by: string): Promise<{ readonly mill: Mill; readonly recorder: Recorder }> => {
    const recorder = new Recorder(by, (entry) => void history.push(entry), times)
    const mill = await open(recorded(await play.openEngine(), recorder, names.nameOf), { clock })
    mills.push(mill)
    return { mill, recorder }
  }
  const referee = await start('referee')
  const abilities = abilitiesOf(referee.mill.engine)
  const { clients } = play.program(abilities)
  const { foreign = [], producers = [] } = play
  const never = new AbortController().signal
  const older: Mill[] = []
  for (const [index, version] of workers.entries()) {
    const { mill, recorder } = await start(`worker-${index}`)
    const parts = {
      mill,
      recorder,
      clock,
      crash: () => Promise.reject(new Error('nothing crashes here')),
      block: () => {},
    }
    await mill.work(handlersFor(definitionsFor(abilities, version), parts), workerOptionsFor(abilities, index))
    if (version === 1) older.push(mill)
  }
  const performing = clients.map(async (operations, index) => {
    const own = { ...(await start(`client-${index}`)), abilities, clock, signal: never }
    await perform(operations, { ...own, ...(begin !== undefined && { transactions: { begin, names } }) })
  })
  const { recorder } = referee
  await Promise.all([...performing, performForeign(foreign, producers, { recorder, clock, signal: never })])
  for (const mill of older) await mill.close()
  recorder.note({ what: 'calm', boundMs })
  const bound = new AbortController()
  const cancel = clock.after(boundMs, () => bound.abort())
  const finished = await finish({ ...referee, abilities, clock, signal: bound.signal })
  cancel()
  if (finished.isFinished) recorder.note({ what: 'finished' })
  for (const mill of mills) if (mill !== referee.mill) await mill.close()
  const final = await readFinalStore(referee.mill.engine, idsOf(history))
  await referee.mill.close()
  const verdict = check({ history, final, capabilities: abilities.capabilities })
  return { ...finished, verdict, history }
}
