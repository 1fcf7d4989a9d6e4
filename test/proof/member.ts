/** One process of the crew, as the referee sees it. */
import type { FakedClock } from './clocks.ts'
import { type Order, type Part, STORE_AWAY, type Told } from './part.ts'
import type { CrewProcess, Role } from './scene.ts'
import type { Child, Spare } from './spares.ts'

type Signal = Parameters<CrewProcess['signal']>[0]

const STDERR_LENGTH = 1_500

/** A process may be killed, may be asked to stop and then exits with 0, and may fail to open a store that is away. */
export function failureOf(member: Member, how: string): string | null {
  if (how === 'SIGKILL' || (how === '0' && member.wasAskedToStop)) return null
  if (how === String(STORE_AWAY) && !member.wasReady) return null
  if (how === 'SIGTERM' && !member.isLoaded) return null
  const said = member.stderr.trim().split('\n').slice(-8).join('\n')
  const asked = member.wasAskedToStop ? ' after SIGTERM' : ' without having been asked to stop'
  return `${member.name} ended with ${how}${asked}${said === '' ? '' : `: ${said}`}`
}

export class Member implements CrewProcess {
  readonly #spare: Spare
  readonly child: Child
  readonly clock?: FakedClock
  readonly part: Part
  readonly pid: number
  readonly exited: Promise<string>
  /** Resolves when it works, or has ended before. */
  readonly ready: Promise<void>
  /** Before it has one it has nothing open. */
  hasPart = false
  wasReady = false
  wasAskedToStop = false
  stderr = ''

  constructor(spare: Spare, part: Part) {
    const { child, clock } = spare
    this.#spare = spare
    this.child = child
    if (clock !== undefined) this.clock = clock
    this.part = part
    this.pid = child.pid ?? 0
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? String(code))))
    const { promise, resolve } = Promise.withResolvers<void>()
    child.on('message', (told: Told) => {
      if (told.told !== 'ready') return
      this.wasReady = true
      resolve()
    })
    this.ready = Promise.race([promise, this.exited.then(() => {})])
    child.stderr?.on('data', (text) => {
      this.stderr = `${this.stderr}${text}`.slice(-STDERR_LENGTH)
    })
    // A message to a process that has just been killed.
    child.on('error', () => {})
  }

  play(): void {
    this.hasPart = true
    this.order({ order: 'play', part: this.part })
  }

  get name(): string {
    return this.part.name
  }

  get role(): Role {
    return this.part.role
  }

  get isLoaded(): boolean {
    return this.#spare.isLoaded
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  signal(signal: Signal): void {
    if (signal === 'SIGTERM') this.wasAskedToStop = true
    this.child.kill(signal)
  }

  block(ms: number): void {
    this.order({ order: 'block', ms })
  }

  /** Resolves with what it tells of this kind; null when it ends before. */
  async hear<Kind extends Told['told']>(kind: Kind): Promise<Extract<Told, { readonly told: Kind }> | null> {
    const { promise, resolve } = Promise.withResolvers<Extract<Told, { readonly told: Kind }>>()
    const isOf = (told: Told): told is Extract<Told, { readonly told: Kind }> => told.told === kind
    this.child.on('message', (told: Told) => {
      if (isOf(told)) resolve(told)
    })
    return Promise.race([promise, this.exited.then(() => null)])
  }

  order(order: Order): void {
    if (this.child.connected) this.child.send(order, () => {})
  }
}
