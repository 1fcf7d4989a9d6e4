/** What a round of the proof is played on, and what a nemesis can reach of it. */

import type { FinalStore } from '../../proof/check/final-store.ts'
import type { Fault } from '../../proof/history/entry.ts'
import type { Producer } from '../../proof/workload/foreign.ts'
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { FakedClock } from './clocks.ts'
import type { Spares } from './spares.ts'

export type EngineName = 'memory' | 'sqlite' | 'postgres' | 'redis' | 'kafka'

/** A store of its own for one round, and the faults that only this engine knows. */
export interface Store {
  readonly engine: EngineName
  readonly capabilities: Capabilities
  /** What the processes open: through the wire where there is one. */
  readonly url: string
  /** What the referee opens to read the final store: never struck. */
  readonly directUrl: string
  /** Between the processes and the server; null where there is no server. */
  readonly wire: Wire | null
  /** Faults of this store: of its server, its file, its topics. */
  readonly nemeses: readonly Nemesis[]
  /** Programs that write jobs without Millrace. */
  readonly producers: readonly Producer[]
  /** The process that has the store, where it lives in one: it plays the parts of all processes, and reads the final store. */
  readonly host?: Host
  /** Ends the server if it is the round's own, and removes the data. */
  destroy(): Promise<void>
}

/** Opens the store of a round. A server may serve several rounds; its data is new each time. */
export type OpenStore = (round: {
  readonly seed: number
  readonly folder: string
  /** Of processes that share the clock of the round. */
  readonly env?: Readonly<Record<string, string>>
}) => Promise<Store>

export interface Host extends Pick<Spares, 'take'> {
  readFinal(ids: readonly string[]): Promise<FinalStore>
}

export type Direction = 'to-server' | 'to-client' | 'both'

/** A wire that passes bytes until a nemesis says otherwise. All faults end with `mend`. */
export interface Wire {
  /** Resets every connection; new ones are refused until mended. */
  cut(): void
  /** Connections stand and pass nothing in this direction: silence, or half-open where only one is silent. */
  silence(direction: Direction): void
  /** Every chunk in this direction is passed on this much later. */
  slow(direction: Direction, byMs: number): void
  /** Each connection is reset after this many more bytes from the server: answers are lost after the act. */
  cutAfter(bytes: number): void
  /** Connections that stood silent are reset; new ones pass again. */
  mend(): void
}

export type Role = 'worker' | 'client' | 'keeper'

/** A process of the round. */
export interface CrewProcess {
  /** Its name in the history. */
  readonly name: string
  readonly role: Role
  readonly pid: number
  readonly isAlive: boolean
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void
  /** Blocks its event loop for so long, by a message that it obeys. */
  block(ms: number): void
  /** Its wall clock, where it can be set. */
  readonly clock?: FakedClock
  /** Resolves with its exit code or the signal that ended it. */
  readonly exited: Promise<string>
}

export interface Crew {
  /** Those that live. */
  readonly processes: readonly CrewProcess[]
  /** Starts one in its place, with the same role. `env`: such as a faked clock. Resolves when it works, or has ended before. */
  replace(process: CrewProcess, env?: Readonly<Record<string, string>>): Promise<CrewProcess>
  /** Starts one and does not wait until it works: to strike it while it opens and joins. */
  launch(role: Role, env?: Readonly<Record<string, string>>): CrewProcess
  /**
   * Stops every process, acts while none runs, and starts them again. None is started meanwhile, and no other program uses the
   * store. `before`: while they still run. `isOrderly`: every process ended by itself; a job of its own or another fault may
   * have killed one.
   */
  whileStopped(
    signal: 'SIGTERM' | 'SIGKILL',
    acts: { readonly before?: () => Promise<void>; readonly act: (isOrderly: boolean) => Promise<void> },
  ): Promise<void>
}

export interface Scene {
  readonly store: Store
  readonly crew: Crew
  readonly folder: string
  /** The wall clock that all processes share, where it can be set. */
  readonly machineClock?: FakedClock
  /** Writes the fault down, lets `strike` carry it out, and writes down that it is healed. */
  during(fault: Omit<Fault, 'what' | 'fault'>, strike: () => Promise<void>): Promise<void>
}

/** One kind of fault. */
export interface Nemesis {
  /** As `--nemesis` takes it. */
  readonly name: string
  /** What it does, as a sentence without subject. */
  readonly does: string
  /** Why it cannot strike here, or null. */
  excuse?(store: Store): string | null
  /** Strikes once and heals. Everything random about it comes from `random`. It lasts a few seconds at most. */
  strike(scene: Scene, random: () => number): Promise<void>
}
