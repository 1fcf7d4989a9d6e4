import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { Engine } from '../../src/engine/engine.ts'

const FACETS = ['inspector', 'controls', 'deadLetters', 'records', 'retention'] as const
type Facet = (typeof FACETS)[number]

/** What can be asked of an engine, as data: it is passed to processes. */
export interface Abilities {
  readonly capabilities: Capabilities
  readonly facets: readonly Facet[]
}

/**
 * What the workload may ask of an engine.
 *
 * @example
 * const program = generate({ seed: 7, abilities: abilitiesOf(mill.engine), jobs: 1_500, clients: 2 })
 */
export function abilitiesOf(engine: Engine): Abilities {
  return { capabilities: engine.capabilities, facets: FACETS.filter((facet) => engine[facet] !== undefined) }
}

export function has({ facets }: Abilities, facet: Facet): boolean {
  return facets.includes(facet)
}

export function ranks({ capabilities: { order } }: Abilities): boolean {
  return order === 'priority' || order === 'ageing-priority'
}
