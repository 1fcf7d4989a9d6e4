/** What a readiness probe asks: does the engine answer? Nothing else, so a process without a worker is ready too. */
import type { Engine } from '../engine/engine.ts'
import type { Clock } from '../time/clock.ts'
import type { HealthAnswer } from './health.ts'
import { type Found, findWithin } from './observed-mill.ts'

export interface Ping {
  readonly latencyMs: number
}

/** A second at most. */
export function pingEngine(engine: Pick<Engine, 'ping'>, clock: Clock): Promise<Found<Ping>> {
  return findWithin(clock, 'a ping of the engine', async () => {
    const startedMs = clock.monotonicMs()
    await engine.ping()
    return { latencyMs: Math.round(clock.monotonicMs() - startedMs) }
  })
}

export function readinessOf(ping: Found<Ping>): HealthAnswer {
  const status = ping.ok ? 'healthy' : 'unhealthy'
  const details = ping.ok ? ping.value : { error: ping.error }
  return { httpStatus: ping.ok ? 200 : 503, body: { status, checks: { engine: { status, ...details } } } }
}

/** The process runs and its event loop turns: that it answers is the answer. */
export const ALIVE: HealthAnswer = { httpStatus: 200, body: { status: 'healthy' } }
