/** The processes of a round. One that ends while the round lasts is replaced, as a supervisor would do it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Recorder } from '../../proof/history/recorder.ts'
import type { Finished } from '../../proof/workload/finish.ts'
import { failureOf, Member } from './member.ts'
import { type Part, type Told, VERSION } from './part.ts'
import type { Crew, CrewProcess, Role } from './scene.ts'
import type { Spares } from './spares.ts'

type Env = Readonly<Record<string, string>>

export interface CrewOptions {
  readonly spares: Pick<Spares, 'take'>
  /** Records which processes started and how each ended. */
  readonly recorder: Recorder
  /** What all parts have in common. */
  readonly part: Pick<Part, 'engine' | 'url' | 'history' | 'program'>
  readonly workers: number
  readonly keepers: number
}

/** As a supervisor would wait after a start that failed. */
const FAILED_START_MS = 300
/** Longer than the drain of a worker and the 8 s that a mill may take to close. */
const STOP_MS = 30_000

/** What a successor takes over. */
type Place = Pick<Part, 'client' | 'index' | 'version' | 'finishMs'>

const NO_CLIENT: Place = { client: null, index: 0, version: 1, finishMs: null }

/** The first worker has the older handlers, so that payloads of both versions meet both. */
function workerPlace(index: number): Place {
  return { ...NO_CLIENT, index, version: index === 0 ? 1 : 2 }
}

export class RoundCrew implements Crew {
  readonly #options: CrewOptions
  readonly #members = new Set<Member>()
  readonly #successors = new Map<CrewProcess, Promise<CrewProcess>>()
  /** By client: the first operation that is not performed yet, and whether it has performed all. */
  readonly #progress: { next: number; isDone: boolean }[]
  /** A sentence for each process that ended in a way that is not allowed. */
  readonly failures: string[] = []
  readonly #clientsDone = Promise.withResolvers<void>()
  #started = 0
  #isStopping = false
  /** Processes that are started get their parts when it resolves. */
  #gate: Promise<void> = Promise.resolve()
  /** The same for programs that are not of the crew, which run on until the processes have stopped. */
  #outsideGate: Promise<void> = Promise.resolve()
  readonly #outside = new Set<Promise<unknown>>()

  constructor(options: CrewOptions) {
    this.#options = options
    this.#progress = Array.from({ length: options.part.program.clients }, () => ({ next: 0, isDone: false }))
  }

  get processes(): readonly CrewProcess[] {
    return [...this.#members].filter(({ isAlive }) => isAlive)
  }

  /** Workers and keepers first, so that they run when the clients begin. */
  async start(): Promise<void> {
    const { workers, keepers, part } = this.#options
    const hired = [
      ...Array.from({ length: workers }, (_, index) => this.#hire('worker', workerPlace(index))),
      ...Array.from({ length: keepers }, () => this.#hire('keeper', NO_CLIENT)),
    ]
    await Promise.all(hired.map(({ ready }) => ready))
    for (let client = 0; client < part.program.clients; client += 1) this.#hire('client', { ...NO_CLIENT, client })
  }

  replace(process: CrewProcess, env?: Env): Promise<CrewProcess> {
    const known = this.#successors.get(process)
    if (known !== undefined) return known
    const place = process instanceof Member ? process.part : NO_CLIENT
    const successor = this.#hire(process.role, place, env)
    const replaced = successor.ready.then(() => successor)
    this.#successors.set(process, replaced)
    return replaced
  }

  launch(role: Role, env?: Env): CrewProcess {
    const extra = this.#hire(role, { ...NO_CLIENT, index: this.#started }, env)
    // It is not replaced when it ends, because it is an extra one.
    this.#successors.set(extra, Promise.resolve(extra))
    return extra
  }

  async whileStopped(
    signal: 'SIGTERM' | 'SIGKILL',
    { before, act }: Parameters<Crew['whileStopped']>[1],
  ): Promise<void> {
    const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
    this.#gate = gate
    const members = [...this.#members].filter(({ hasPart }) => hasPart)
    try {
      // One that has not opened the store yet would open whatever takes its place.
      await Promise.all(members.map(({ ready }) => ready))
      await before?.()
      for (const member of members) member.signal(signal)
      this.#outsideGate = gate
      const ends = await Promise.all(members.map(({ exited }) => exited))
      await Promise.allSettled(this.#outside)
      await act(ends.every((how) => how === '0'))
    } finally {
      openGate()
    }
    await Promise.all(members.map((member) => this.#successors.get(member)))
  }

  /** Runs another program on the store, when nothing keeps all of them away from it. */
  async runOutside(run: () => Promise<void>): Promise<void> {
    for (let gate: Promise<void> | null = null; gate !== this.#outsideGate; await gate) gate = this.#outsideGate
    const running = run()
    this.#outside.add(running)
    await running.finally(() => this.#outside.delete(running))
  }

  /** Workers of the newer version take the place of the older ones, so that nothing waits for one of them by chance. */
  async upgrade(): Promise<void> {
    const old = [...this.#members].filter(({ role, part }) => role === 'worker' && part.version === 1)
    await Promise.all(
      old.map(async (member) => {
        const successor = this.replace(member, { [VERSION]: '2' })
        member.signal('SIGTERM')
        await successor
      }),
    )
  }

  /** Resolves when the clients have performed all their operations, or after the bound: whether they have. */
  async untilClientsAreDone(boundMs: number): Promise<boolean> {
    const isLate = sleep(boundMs, false, { ref: false })
    return Promise.race([this.#clientsDone.promise.then(() => true), isLate])
  }

  /** Lets a client of its own end what waits for an operator, and wait until no job is left. */
  async finish(boundMs: number): Promise<Finished> {
    for (const untilMs = performance.now() + boundMs; ; await sleep(FAILED_START_MS)) {
      const member = this.#hire('client', { ...NO_CLIENT, finishMs: Math.ceil(untilMs - performance.now()) })
      this.#successors.set(member, Promise.resolve(member))
      const told = await member.hear('finished')
      if (told !== null) return told
      if (member.wasReady || performance.now() > untilMs) return { isFinished: false, left: {} }
    }
  }

  /** Asks all to stop and waits until they have. One that does not exit with 0 is a failure. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const members = [...this.#members]
    for (const member of members) member.signal('SIGTERM')
    const late = sleep(STOP_MS, 'late', { ref: false })
    for (const member of members) {
      if ((await Promise.race([member.exited, late])) !== 'late') continue
      this.failures.push(`${member.name} did not stop within ${STOP_MS} ms of SIGTERM`)
      member.signal('SIGKILL')
      await member.exited
    }
  }

  /** Kills what is left at the end of a round. */
  async kill(): Promise<void> {
    this.#isStopping = true
    const members = [...this.#members]
    for (const member of members) member.signal('SIGKILL')
    await Promise.all(members.map(({ exited }) => exited))
  }

  #hire(role: Role, place: Place, env: Env = {}): Member {
    this.#started += 1
    const name = `${role}-${this.#started}`
    const { spares, recorder, part } = this.#options
    const from = place.client === null ? 0 : (this.#progress[place.client]?.next ?? 0)
    const { [VERSION]: version = place.version, ...rest } = env
    const member = new Member(spares.take(rest), {
      ...part,
      ...place,
      name,
      role,
      from,
      version: Number(version) === 2 ? 2 : 1,
    })
    this.#members.add(member)
    recorder.note({ what: 'process', event: 'started', name })
    member.child.on('message', (told: Told) => this.#hear(member, told))
    void member.exited.then((how) => this.#onExit(member, how))
    void this.#gate.then(() => member.play())
    return member
  }

  #hear({ part }: Member, told: Told): void {
    const progress = part.client === null ? undefined : this.#progress[part.client]
    if (progress === undefined) return
    // An operation that was begun is not performed again: it may have had its effect.
    if (told.told === 'at') progress.next = told.operation + 1
    if (told.told === 'done') progress.isDone = true
    if (this.#progress.every(({ isDone }) => isDone)) this.#clientsDone.resolve()
  }

  #onExit(member: Member, how: string): void {
    const { name } = member
    this.#members.delete(member)
    this.#options.recorder.note({ what: 'process', event: 'exited', name, how })
    const failure = failureOf(member, how)
    if (failure !== null) this.failures.push(failure)
    if (this.#isStopping || this.#successors.has(member)) return
    const client = member.part.client === null ? undefined : this.#progress[member.part.client]
    if (client?.isDone === true) return
    const { promise, resolve } = Promise.withResolvers<CrewProcess>()
    this.#successors.set(member, promise)
    setTimeout(
      () => {
        if (this.#isStopping) return resolve(member)
        const successor = this.#hire(member.role, member.part)
        void successor.ready.then(() => resolve(successor))
      },
      member.wasReady ? 0 : FAILED_START_MS,
    )
  }
}
