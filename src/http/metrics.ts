import type { Parts } from './parts.ts'

/** What a Prometheus server scrapes. */
export async function metricsAnswer(parts: Parts): Promise<Response> {
  const metrics = await parts.metrics()
  const text = await metrics.collectMetrics()
  return new Response(text, { headers: { 'content-type': metrics.contentType, 'cache-control': 'no-store' } })
}
