import type { Consumer, Engine, Subscription } from '../src/engine/engine.ts'
import { replaced } from '../src/testing/replaced.ts'
import type { CreateHarness } from './harness.ts'

type Facet = 'inspector' | 'controls' | 'deadLetters' | 'retention' | 'records' | 'logs'

/** What an altered engine does differently from the right one under it; the rest it hands on. */
export interface Alteration {
  engine?(right: Engine): Partial<Engine>
  /** Facets that it does not have. */
  readonly without?: readonly Facet[]
  subscription?(subscription: Subscription): Subscription
  consumer?(right: Consumer, engine: Engine): Partial<Consumer>
}

/** Alters the harness's engine and all its further views. What `alter` remembers is shared by them, one store long. */
export function altered(create: CreateHarness, alter: () => Alteration): CreateHarness {
  return async () => {
    const harness = await create()
    const alteration = alter()
    return {
      ...harness,
      engine: alterEngine(harness.engine, alteration),
      other: async () => alterEngine(await harness.other(), alteration),
    }
  }
}

export function alterEngine(right: Engine, alteration: Alteration): Engine {
  const changes = new Map<PropertyKey, unknown>(Object.entries(alteration.engine?.(right) ?? {}))
  for (const facet of alteration.without ?? []) changes.set(facet, undefined)
  changes.set('consume', async (asked: Subscription): Promise<Consumer> => {
    const consumer = await right.consume(alteration.subscription?.(asked) ?? asked)
    return { ...delegate(consumer), ...alteration.consumer?.(consumer, right) }
  })
  return replaced(right, changes)
}

function delegate(consumer: Consumer): Consumer {
  return {
    claim: (request) => consumer.claim(request),
    renew: (leases, leaseMs) => consumer.renew(leases, leaseMs),
    settle: (settlements) => consumer.settle(settlements),
    report: (lease, progress) => consumer.report(lease, progress),
    listen: (listener) => consumer.listen(listener),
    close: () => consumer.close(),
  }
}
