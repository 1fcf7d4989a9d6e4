import type { Registry } from 'prom-client'
import type { Engine } from '../../engine/engine.ts'
import type { Events } from '../../events.ts'
import type { Clock } from '../../time/clock.ts'

/** What an instrument measures with. */
export interface MetricParts {
  readonly prom: typeof import('prom-client')
  /** Of this collector alone: the global one belongs to the program that we run in. */
  readonly registry: Registry
  readonly prefix: string
  readonly events: Events
  readonly engine: Pick<Engine, 'counts' | 'inspector'>
  readonly clock: Clock
}

/** A group of metrics about one thing. It listens from the start; what events cannot tell it reads when collected. */
export interface Instrument {
  collect(): Promise<void> | void
  detach(): void
}
