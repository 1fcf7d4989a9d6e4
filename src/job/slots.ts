import { OptionError } from '../errors.ts'
import type { Tenant } from './job.ts'
import { type OptionNames, refuseUnknown } from './known-options.ts'

/** How many jobs of a type run at once: a number for each worker, or an object for all workers together. */
export type Concurrency =
  | number
  | {
      readonly max: number
      /** `tenant`: `max` jobs for each `tenant.orgId`. Jobs without a tenant share one more such group. */
      readonly by?: 'tenant'
    }

/**
 * At most `max` jobs of a type at once, over all workers of all processes, or that many for each tenant. A job has a slot from
 * its claim until its lease is settled, revoked or taken over by the next start; an expired lease still has its slot.
 */
export interface SharedSlots {
  readonly max: number
  /** Null: one group for the whole type. */
  readonly by: 'tenant' | null
}

const NAMES: OptionNames<Exclude<Concurrency, number>> = { max: true, by: true }

/** `concurrency`: for one worker. `slots`: for all of them. */
export function checkConcurrency(given: Concurrency | undefined): {
  readonly concurrency: number | null
  readonly slots: SharedSlots | null
} {
  if (given === undefined) return { concurrency: null, slots: null }
  if (typeof given !== 'object' || given === null) return { concurrency: checkConcurrencyMax(given), slots: null }
  refuseUnknown(given, NAMES, `'concurrency'`)
  const by: unknown = given.by
  if (by !== undefined && by !== 'tenant')
    throw new OptionError(`'concurrency.by' is '${String(by)}'; give 'tenant', or leave it out for the whole type`)
  return { concurrency: null, slots: { max: checkConcurrencyMax(given.max, 'concurrency.max'), by: by ?? null } }
}

export function checkConcurrencyMax(max: number, name = 'concurrency'): number {
  if (Number.isInteger(max) && max >= 1) return max
  throw new OptionError(`'${name}' is ${max}; give a whole number from 1`)
}

/** The group whose slots a job takes. Without a tenant it is the empty text, which no tenant has. */
export function slotGroup(tenant: Tenant | null, { by }: Pick<SharedSlots, 'by'>): string {
  return by === null ? '' : (tenant?.orgId ?? '')
}
