import { ANSWER_MS, answerWithin } from '../observe/deadline.ts'
import { errorText } from '../observe/error-text.ts'
import { checkHealth } from '../observe/health/check.ts'
import { actuatorHealth } from '../observe/health/forms.ts'
import type { Health } from '../observe/health/health.ts'
import { type Connectivity, watchHealth, withComponents } from '../observe/health/watch.ts'
import { Watch } from '../observe/watch/watch.ts'
import type { Parts } from './parts.ts'

const NOBODY = { list: async () => [], seen: async () => [] }

export interface HealthAnswers {
  /** Document A's words; 503 when unhealthy. */
  health(): Promise<Response>
  /** Whether this process turns at all: whoever reads this knows. */
  live(): Response
  /** Whether a claim could be served now. */
  ready(): Promise<Response>
  /** Document D's form (X027): UP and DEGRADED are 200, DOWN is 503. */
  actuator(): Promise<Response>
}

/** Every check is bounded to a second, so none of these answers takes much longer, whatever hangs behind them (X070). */
export function healthAnswers(parts: Parts): HealthAnswers {
  const { mill, clock, topics } = parts
  const presence = mill.engine.presence ?? NOBODY
  const watch =
    topics === null
      ? null
      : new Watch({
          presence,
          clock,
          lags: () => topics.lags(),
          pending: async () => (await topics.pending?.()) ?? [],
        })
  const { inspector } = mill.engine
  const engine = {
    ping: () => mill.engine.ping(),
    // As they were a second ago: a probe must not make a large store count itself anew.
    counts: () => parts.sampler.counts(),
    ...(inspector !== undefined && { inspector }),
  }
  const examine = (): Promise<Health> =>
    checkHealth(
      { engine },
      {
        presence,
        clock,
        // Where nobody can say that it lives, nobody is missed.
        ...(mill.engine.presence === undefined && { minWorkers: 0 }),
        ...parts.health,
      },
    )
  return {
    async health() {
      const health = await examine()
      return told(health, health.status === 'unhealthy' ? 503 : 200)
    },
    live: () => told({ status: 'healthy' }, 200),
    async ready() {
      const engine = await ping(parts)
      if (engine.ok) return told({ status: 'healthy', checks: { engine: { status: 'healthy', ...engine.value } } }, 200)
      return told({ status: 'unhealthy', checks: { engine: { status: 'unhealthy', error: engine.error } } }, 503)
    },
    async actuator() {
      const [health, reading, engine] = await Promise.all([examine(), watch?.read() ?? null, ping(parts)])
      const plain = actuatorHealth(health)
      if (reading === null || topics === null) return told(plain.body, plain.httpStatus)
      const components = watchHealth(reading, engine, { lagLimits: (topic) => topics.limits(topic) })
      const { body, httpStatus } = withComponents(plain.body, components)
      return told(body, httpStatus)
    },
  }
}

async function ping({ mill, clock }: Parts): Promise<Connectivity> {
  const startedMs = clock.monotonicMs()
  try {
    await answerWithin(clock, ANSWER_MS, 'a ping of the engine', () => mill.engine.ping())
    return { ok: true, value: { latencyMs: Math.round(clock.monotonicMs() - startedMs) } }
  } catch (error) {
    return { ok: false, error: errorText(error) }
  }
}

function told(body: object, status: number): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}
