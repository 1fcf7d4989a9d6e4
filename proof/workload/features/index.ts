/** The features that a workload mixes. Each makes a few operations that belong together and stay in order. */
import type { Operation } from '../operation.ts'
import { actFeatures } from './acts.ts'
import { behaviourFeatures } from './behaviours.ts'
import { callFeatures } from './calls.ts'
import { type Feature, type Making, returns } from './feature.ts'
import { optionFeatures } from './options.ts'

export type { Feature, Making } from './feature.ts'

export const FEATURES: readonly Feature[] = [
  ...Object.values(behaviourFeatures),
  ...Object.values(optionFeatures),
  ...Object.values(callFeatures),
  ...Object.values(actFeatures),
]

/** Short and plain, as most jobs are. */
export function plainOperation({ dice, job }: Making, count: number): Operation {
  const jobs = Array.from({ length: count }, () => job('plain', [returns(dice.chance(0.9) ? 0 : dice.between(1, 15))]))
  return { do: 'enqueue', how: count > 3 && dice.chance(0.7) ? 'many' : 'one-by-one', jobs }
}
