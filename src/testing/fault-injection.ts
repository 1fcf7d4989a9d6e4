import type { Consumer, Engine } from '../engine/engine.ts'
import { EngineError, OptionError } from '../errors.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { replaced } from './replaced.ts'

/** The calls of the port that can be made to fail or to wait. */
export type FaultyCall = 'enqueue' | 'claim' | 'settle' | 'renew'

/** Which calls are meant, counted from 1 since the engine was wrapped, over all its consumers. */
export interface FaultPlace {
  /** The first call that is affected. Default: 1. */
  readonly nth?: number
  /** How many in a row; `Infinity` for all that follow. Default: 1. */
  readonly times?: number
}

export interface Failure extends FaultPlace {
  /**
   * `before`: nothing happened in the store. `after`: it did, and only the answer was lost, so that a caller who takes
   * the error for a refusal is caught. Default: `before`.
   */
  readonly when?: 'before' | 'after'
  /** What the call rejects with. Default: an EngineError with `ERR_STORAGE_FAILED`. */
  readonly error?: Error
}

export interface Delay extends FaultPlace {
  readonly by: Duration
}

interface Planned {
  readonly call: FaultyCall
  readonly firstNth: number
  readonly lastNth: number
  readonly delayMs: number
  readonly failure: { readonly when: 'before' | 'after'; readonly error: Error | null } | null
}

/**
 * Faults of a store, planned by a test: the nth call of a kind fails or takes its time, and all others reach the engine
 * untouched. The product's code knows nothing of it.
 *
 * @example
 * const faults = new Faults().fail('settle', { nth: 1 }).delay('claim', { nth: 2, by: '5s' })
 * const { mill } = await openForTest({ faults })
 */
export class Faults {
  readonly #planned: Planned[] = []
  readonly #counts = new Map<FaultyCall, number>()

  /** Plans a failure; returns this, so that plans can be chained. Plans may be added at any time. */
  fail(call: FaultyCall, failure: Failure = {}): this {
    const { when = 'before', error = null } = failure
    this.#planned.push({ call, ...placeOf(failure), delayMs: 0, failure: { when, error } })
    return this
  }

  /** Plans a wait before the call reaches the engine, on the clock that `wrap` was given. */
  delay(call: FaultyCall, delay: Delay): this {
    this.#planned.push({ call, ...placeOf(delay), delayMs: parseDurationMs(delay.by, 'by'), failure: null })
    return this
  }

  /** How many calls of the kind there were, those that failed included. */
  calls(call: FaultyCall): number {
    return this.#counts.get(call) ?? 0
  }

  /**
   * An engine that does what the plans say and hands everything else on. Its leases are renewed from this thread, so
   * that `renew` can be made to fail with every engine.
   */
  wrap(engine: Engine, clock: Clock = systemClock): Engine {
    const through: Through = (call, act, signal) => this.#through(call, clock, act, signal)
    const changes = new Map<PropertyKey, unknown>([
      ['threadUrl', null],
      ['enqueue', (...given: Parameters<Engine['enqueue']>) => through('enqueue', () => engine.enqueue(...given))],
      [
        'consume',
        async (...given: Parameters<Engine['consume']>) => faultyConsumer(await engine.consume(...given), through),
      ],
    ])
    return replaced(engine, changes)
  }

  async #through<T>(call: FaultyCall, clock: Clock, act: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const nth = this.calls(call) + 1
    this.#counts.set(call, nth)
    const meant = this.#planned.filter((plan) => plan.call === call && plan.firstNth <= nth && nth <= plan.lastNth)
    const delayMs = meant.reduce((sum, plan) => sum + plan.delayMs, 0)
    if (delayMs > 0) await clock.sleep(delayMs, signal)
    const failure = meant.find((plan) => plan.failure !== null)?.failure ?? null
    if (failure?.when === 'after') await act()
    if (failure !== null) throw failure.error ?? injected(call, nth)
    return act()
  }
}

type Through = <T>(call: FaultyCall, act: () => Promise<T>, signal?: AbortSignal) => Promise<T>

function faultyConsumer(consumer: Consumer, through: Through): Consumer {
  const changes = new Map<PropertyKey, unknown>([
    [
      'claim',
      (request: Parameters<Consumer['claim']>[0]) => through('claim', () => consumer.claim(request), request.signal),
    ],
    ['settle', (...given: Parameters<Consumer['settle']>) => through('settle', () => consumer.settle(...given))],
    ['renew', (...given: Parameters<Consumer['renew']>) => through('renew', () => consumer.renew(...given))],
  ])
  return replaced(consumer, changes)
}

function placeOf({ nth = 1, times = 1 }: FaultPlace): Pick<Planned, 'firstNth' | 'lastNth'> {
  if (!Number.isInteger(nth) || nth < 1) throw new OptionError(`'nth' is ${nth}; give a whole number from 1`)
  if (!(times >= 1)) throw new OptionError(`'times' is ${times}; give a number from 1, or Infinity`)
  return { firstNth: nth, lastNth: nth + times - 1 }
}

function injected(call: FaultyCall, nth: number): EngineError {
  return new EngineError('ERR_STORAGE_FAILED', `${call}, call ${nth}, was told to fail by the test's Faults`)
}
