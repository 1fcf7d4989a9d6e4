import { claimingMutants } from './claiming.ts'
import { dependencyMutants } from './dependencies.ts'
import { deskMutants } from './desk.ts'
import { fencingMutants } from './fencing.ts'
import { keepingMutants } from './keeping.ts'
import { keyMutants } from './keys.ts'
import { logMutants } from './logs.ts'
import { lookingMutants } from './looking.ts'
import type { Mutant } from './mutant.ts'
import { operatingMutants } from './operating.ts'
import { outcomeMutants } from './outcomes.ts'
import { retentionMutants } from './retention.ts'
import { slotMutants } from './slots.ts'

export type { Mutant } from './mutant.ts'

/** Wrong engines. A suite that lets one of them pass proves nothing about a right one. */
export const mutants: readonly Mutant[] = [
  ...fencingMutants,
  ...claimingMutants,
  ...slotMutants,
  ...keyMutants,
  ...outcomeMutants,
  ...deskMutants,
  ...dependencyMutants,
  ...lookingMutants,
  ...keepingMutants,
  ...logMutants,
  ...retentionMutants,
  ...operatingMutants,
]
