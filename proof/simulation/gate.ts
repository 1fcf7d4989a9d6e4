/** An engine as one simulated process reaches it: each call and each answer waits until the scheduler chooses it. */
import type { Consumer, ConsumerListener, Engine, Subscription } from '../../src/engine/engine.ts'
import { replaced } from '../../src/testing/replaced.ts'
import type { Owner } from './clock.ts'
import type { CallFault, Scheduler } from './scheduler.ts'

interface GateParts {
  readonly owner: Owner
  readonly scheduler: Scheduler
  /** What becomes of the next call of this name. */
  faultOf(call: string): CallFault | null
  /** Aborts when the process is killed: a claim that waits in the engine ends without having taken anything. */
  readonly killed: AbortSignal
}

type Method = (...given: unknown[]) => Promise<unknown>

/** Calls that may wait in the engine for something else to happen. */
const WAITING: readonly PropertyKey[] = ['waitFor']
/** Members that are no calls: they subscribe at once, and what they tell comes by the scheduler. */
const SUBSCRIBING: readonly PropertyKey[] = ['onChange']

export function gated(engine: Engine, parts: GateParts): Engine {
  const call = callsOf(parts)
  const changes = new Map<PropertyKey, unknown>([
    // The renewal thread would have a time of its own.
    ['threadUrl', null],
    [
      'enqueue',
      (...[jobs, within]: Parameters<Engine['enqueue']>) => call('enqueue', () => engine.enqueue(jobs, within)),
    ],
    ['consume', (subscription: Subscription) => gatedConsumer(engine, subscription, parts)],
    ['close', () => call('close', () => engine.close())],
    ['ping', () => call('ping', () => engine.ping())],
    ['counts', () => call('counts', () => engine.counts())],
  ])
  const { inspector, controls, deadLetters, records, retention } = engine
  if (inspector !== undefined) changes.set('inspector', gatedFacet(inspector, parts))
  if (controls !== undefined) changes.set('controls', gatedFacet(controls, parts))
  if (deadLetters !== undefined) changes.set('deadLetters', gatedFacet(deadLetters, parts))
  if (records !== undefined) changes.set('records', gatedFacet(records, parts))
  if (retention !== undefined) changes.set('retention', gatedFacet(retention, parts))
  return replaced(engine, changes)
}

type CallOf = <Value>(name: string, act: () => Promise<Value>, mayWait?: boolean) => Promise<Value>

function callsOf({ owner, scheduler, faultOf }: GateParts): CallOf {
  return (name, act, mayWait = false) => scheduler.call(owner, act, { fault: faultOf(name), mayWait })
}

/** Every method of the facet is a call. */
function gatedFacet<Facet extends object>(facet: Facet, parts: GateParts): Facet {
  const call = callsOf(parts)
  return new Proxy(facet, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      if (SUBSCRIBING.includes(name)) {
        return (listener: () => void): unknown =>
          Reflect.apply(member, target, [() => parts.scheduler.tell(parts.owner, listener)])
      }
      const method: Method = (...given) =>
        call(String(name), async () => Reflect.apply(member, target, given), WAITING.includes(name))
      return method
    },
  })
}

async function gatedConsumer(engine: Engine, subscription: Subscription, parts: GateParts): Promise<Consumer> {
  const { owner, scheduler, killed } = parts
  const call = callsOf(parts)
  const consumer = await call('consume', () => engine.consume(subscription))
  const gate: Consumer = {
    ...(consumer.isRemote === true && { isRemote: true }),
    claim: (request) => {
      const signal = AbortSignal.any([request.signal, killed])
      return call('claim', () => consumer.claim({ ...request, signal }), request.waitMs > 0)
    },
    renew: (leases, leaseMs) => call('renew', () => consumer.renew(leases, leaseMs)),
    settle: (settlements) => {
      // Taken over at once: the worker goes on with its own objects.
      const asked = settlements.map(({ lease, outcome }) => ({ lease, outcome }))
      return call('settle', () => consumer.settle(asked))
    },
    report: (lease, progress) => call('report', () => consumer.report(lease, progress)),
    listen: ({ onLost, onTrouble }) => {
      const listener: ConsumerListener = {
        ...(onLost !== undefined && {
          onLost: (lost) => scheduler.tell(owner, () => onLost(lost)),
        }),
        ...(onTrouble !== undefined && { onTrouble: (error) => scheduler.tell(owner, () => onTrouble(error)) }),
      }
      return consumer.listen(listener)
    },
    close: () => call('close', () => consumer.close()),
  }
  return gate
}
