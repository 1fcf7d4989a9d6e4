import { NO_PRESENCE, presenceIn } from '../engine/presence.ts'
import type { HealthAnswer, HealthEndpoint, HealthSources } from '../observe/health.ts'
import { ALIVE, healthAnswer, pingEngine, readinessOf } from '../observe/readiness.ts'
import type { AdminContext } from './context.ts'

export type Probes = Readonly<Record<string, () => Promise<Response>>>

/** Health and metrics by path. No probe takes much longer than a second, whatever hangs behind it. */
export function probesOf(admin: AdminContext, endpoints: Readonly<Record<string, HealthEndpoint>>): Probes {
  const sources = sourcesOf(admin)
  const own: Readonly<Record<string, () => Promise<HealthAnswer>>> = {
    '/health': async () => healthAnswer(await sources.health()),
    '/health/live': async () => ALIVE,
    '/health/ready': async () => readinessOf(await sources.ping()),
  }
  const others = Object.entries(endpoints).map(([path, make]) => [path, make(sources)] as const)
  const probes = [...Object.entries(own), ...others].map(([path, answer]) => {
    return [path, async () => json(await answer())] as const
  })
  return { ...Object.fromEntries(probes), '/metrics': () => metricsAnswer(admin) }
}

function sourcesOf(admin: AdminContext): HealthSources {
  const { clock, topics, sampler } = admin
  const { engine } = sampler
  return {
    presence: presenceIn(engine) ?? NO_PRESENCE,
    topics,
    clock,
    // With the sampler's counts: a probe must not make a large store count again.
    health: () => sampler.health(admin.health),
    ping: () => pingEngine(engine, clock),
  }
}

function json({ body, httpStatus }: HealthAnswer): Response {
  return Response.json(body, { status: httpStatus, headers: { 'cache-control': 'no-store' } })
}

/** What a Prometheus server scrapes. */
async function metricsAnswer(admin: AdminContext): Promise<Response> {
  const metrics = await admin.metrics()
  const text = await metrics.collectMetrics()
  return new Response(text, { headers: { 'content-type': metrics.contentType, 'cache-control': 'no-store' } })
}
