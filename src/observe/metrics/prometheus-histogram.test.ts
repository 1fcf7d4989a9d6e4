import assert from 'node:assert/strict'
import { test } from 'node:test'
import prom from 'prom-client'
import { histogramByType } from './prometheus-histogram.ts'

const BUCKETS = [0.1, 0.5, 1, 5]
const settings = { name: 'waited_seconds', help: 'How long it waited', buckets: BUCKETS }

function registry() {
  const made = new prom.Registry()
  made.setDefaultLabels({ engine: 'none' })
  return made
}

// A147 X068
test("a histogram is shown exactly as prom-client's own, with values on, between and above the bounds", async () => {
  const theirs = registry()
  const own = new prom.Histogram({ ...settings, labelNames: ['type'], registers: [theirs] })
  const ours = registry()
  const histogram = histogramByType({ prom, registry: ours }, settings)
  assert.equal(await ours.metrics(), await theirs.metrics(), 'nothing is observed yet')
  for (const type of ['mail', 'odd "name"\\with\nall']) {
    for (const value of [0, 0.1, 0.1, 0.3, 0.500001, 1, 4.999, 5, 5.1, 3_600]) {
      own.observe({ type }, value)
      histogram.of(type).observe(value)
    }
  }
  own.zero({ type: 'known, never observed' })
  histogram.of('known, never observed')
  assert.equal(await ours.metrics(), await theirs.metrics())
  assert.deepEqual(await ours.getMetricsAsJSON(), withoutExemplars(await theirs.getMetricsAsJSON()))
})

/** prom-client adds `exemplar`, which is never set here. */
function withoutExemplars(metrics: unknown): unknown {
  return JSON.parse(JSON.stringify(metrics, (key, value: unknown) => (key === 'exemplar' ? undefined : value)))
}
