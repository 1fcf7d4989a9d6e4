import type { Engine } from '../engine/engine.ts'
import type { Events } from '../events.ts'

/** What observers need of a mill: its events, and the parts of its engine that they read. */
export interface ObservedMill<Read extends keyof Engine = keyof Engine> {
  readonly events: Events
  readonly engine: Pick<Engine, Read>
}
