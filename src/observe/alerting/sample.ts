import type { Engine } from '../../engine/engine.ts'
import type { Clock } from '../../time/clock.ts'
import type { KeyFigures } from '../figures/collect.ts'
import { findWithin } from '../found.ts'
import { checkHealth, type HealthOptions } from '../health/check.ts'
import type { Watch } from '../watch/watch.ts'
import type { Sample } from './rule.ts'

export interface SampleSources {
  readonly engine: Engine
  readonly figures: KeyFigures
  readonly health: Omit<HealthOptions, 'presence' | 'clock'> & Partial<Pick<HealthOptions, 'presence'>>
  readonly watch: Pick<Watch, 'read'> | null
  readonly windowMs: number
  readonly clock: Clock
}

/** Where nobody keeps presence nobody can be missed. */
const NOBODY = { presence: { list: async () => [] }, minWorkers: 0 }

/** One look at everything, each part for a second at most. */
export async function takeSample(sources: SampleSources): Promise<Sample> {
  const { engine, figures, watch, windowMs, clock } = sources
  const presence = sources.health.presence ?? engine.presence
  const options = { ...sources.health, ...(presence === undefined ? NOBODY : { presence }), clock }
  const [found, health, reading] = await Promise.all([
    findWithin(clock, 'the key figures', () => figures.collectMetrics(windowMs)),
    checkHealth({ engine }, options),
    watch?.read() ?? null,
  ])
  return { atMs: clock.nowMs(), figures: found, health, reading }
}
