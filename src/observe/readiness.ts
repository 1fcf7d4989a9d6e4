/** What a readiness probe asks: does the engine answer? Nothing else, so a process without a worker is ready too. */
import type { Engine } from '../engine/engine.ts'
import type { Clock } from '../time/clock.ts'
import type { HealthAnswer, HealthWord } from './health.ts'
import { type Found, findWithin } from './observed-mill.ts'

export interface Ping {
  readonly latencyMs: number
}

/** A second at most. */
export function pingEngine(engine: Pick<Engine, 'ping'>, clock: Clock): Promise<Found<Ping>> {
  return timePing(clock, 'a ping of the engine', () => engine.ping())
}

/** The same for another store. */
export function timePing(clock: Clock, what: string, ping: () => Promise<void>): Promise<Found<Ping>> {
  return findWithin(clock, what, async () => {
    const startedMs = clock.monotonicMs()
    await ping()
    return { latencyMs: Math.round(clock.monotonicMs() - startedMs) }
  })
}

export function readinessOf(ping: Found<Ping>): HealthAnswer {
  const status = ping.ok ? 'healthy' : 'unhealthy'
  const details = ping.ok ? ping.value : { error: ping.error }
  return healthAnswer({ status, checks: { engine: { status, ...details } } })
}

/** Degraded is no reason to take a process out of service. */
export function healthAnswer<Body extends { readonly status: HealthWord }>(body: Body): HealthAnswer {
  return { httpStatus: body.status === 'unhealthy' ? 503 : 200, body }
}

/** The process runs and its event loop turns: that it answers is the answer. */
export const ALIVE: HealthAnswer = healthAnswer({ status: 'healthy' })
