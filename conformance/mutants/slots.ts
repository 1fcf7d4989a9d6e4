import type { SubscribedType, Subscription } from '../../src/engine/engine.ts'
import type { Settlement } from '../../src/engine/outcome.ts'
import type { SharedSlots } from '../../src/job/slots.ts'
import type { Mutant } from './mutant.ts'

/** The subscription with other slots. They are read at every claim, so what `change` returns may differ then. */
function withSlots(subscription: Subscription, change: (slots: SharedSlots) => SharedSlots | undefined): Subscription {
  if (subscription.types === 'every') return subscription
  const types = subscription.types.map((type): SubscribedType => {
    if (type.slots === undefined) return type
    return Object.defineProperty({ ...type }, 'slots', {
      get: () => (type.slots === undefined ? undefined : change(type.slots)),
      enumerable: true,
    })
  })
  return { ...subscription, types }
}

/** The number of slots goes wrong by `step` with every settlement that `isMiscounted`. */
function miscounting(
  step: number,
  isMiscounted: (settlement: Settlement, wasRefused: boolean) => boolean,
): ReturnType<Mutant['alter']> {
  let error = 0
  return {
    subscription: (subscription) => withSlots(subscription, ({ max, by }) => ({ max: max + error, by })),
    consumer: (right) => ({
      settle: async (settlements) => {
        const refused = await right.settle(settlements)
        for (const settlement of settlements) {
          const wasRefused = refused.some(({ lease }) => lease.token === settlement.lease.token)
          if (isMiscounted(settlement, wasRefused)) error += step
        }
        return refused
      },
    }),
  }
}

export const slotMutants: readonly Mutant[] = [
  {
    flaw: 'slots are ignored',
    killer: 'no more jobs of a type are held than it has slots, over all views, however many claims run at once',
    alter: () => ({ subscription: (subscription) => withSlots(subscription, () => undefined) }),
  },
  {
    flaw: 'all tenants share the slots of one',
    killer: 'each tenant has slots of its own, and jobs without a tenant share one group',
    alter: () => ({ subscription: (subscription) => withSlots(subscription, ({ max }) => ({ max, by: null })) }),
  },
  {
    flaw: 'slots are read once, when the consumer begins',
    killer: 'the number of slots may change while a consumer is at work',
    alter: () => ({
      subscription: (subscription) => {
        const known = new Map<SharedSlots['by'], SharedSlots>()
        return withSlots(subscription, (slots) => {
          const first = known.get(slots.by) ?? slots
          known.set(slots.by, first)
          return first
        })
      },
    }),
  },
  {
    flaw: 'a dead letter keeps its slot',
    killer: 'every outcome frees the slot of its job and no other, and a second settle frees none',
    alter: () => miscounting(-1, ({ outcome }, wasRefused) => outcome.kind === 'dead' && !wasRefused),
  },
  {
    flaw: 'a release frees two slots',
    killer: 'every outcome frees the slot of its job and no other, and a second settle frees none',
    alter: () => miscounting(1, ({ outcome }, wasRefused) => outcome.kind === 'release' && !wasRefused),
  },
  {
    flaw: 'the settle of a holder that has lost its lease frees a slot',
    killer: 'a running job that is cancelled frees its slot once',
    alter: () => miscounting(1, (_, wasRefused) => wasRefused),
  },
]
