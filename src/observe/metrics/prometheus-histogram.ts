import type { MetricParts } from './instrument.ts'

/** The buckets of one type. Observing costs a few additions; prom-client's histogram takes a microsecond for three. */
export class BucketCounts {
  readonly bounds: Float64Array
  /** Values in each bucket but not in the one before. Values above the last bound are in none. */
  readonly inBucket: Float64Array
  sum = 0
  count = 0

  constructor(bounds: readonly number[]) {
    this.bounds = Float64Array.from(bounds)
    this.inBucket = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    this.sum += value
    this.count += 1
    const { bounds } = this
    for (let bucket = 0; bucket < bounds.length; bucket += 1) {
      if (value > (bounds[bucket] ?? 0)) continue
      this.inBucket[bucket] = (this.inBucket[bucket] ?? 0) + 1
      return
    }
  }
}

interface Settings {
  readonly name: string
  readonly help: string
  readonly buckets: readonly number[]
}

export interface TypeHistogram {
  /** Shown from now on, with zeros at first: what a series starts with is hidden from `increase`. */
  of(type: string): BucketCounts
}

/**
 * A histogram by type that enters prom-client's registry only at a scrape. prom-client builds its text and its JSON from
 * `getForPromString`, which its types leave out.
 */
export function histogramByType(
  { prom, registry }: Pick<MetricParts, 'prom' | 'registry'>,
  { name, help, buckets }: Settings,
): TypeHistogram {
  const observed = new Map<string, BucketCounts>()
  class Collected extends prom.Histogram<'type'> {
    async getForPromString() {
      const values = [...observed].flatMap(([type, one]) => samplesOf(name, type, one))
      return { name, help, type: 'histogram', aggregator: 'sum', values }
    }
  }
  new Collected({ name, help, labelNames: ['type'], buckets: [...buckets], registers: [registry] })
  return {
    of(type) {
      const known = observed.get(type) ?? new BucketCounts(buckets)
      observed.set(type, known)
      return known
    },
  }
}

/** Prometheus' buckets are cumulative: each includes all before it, and the last has everything. */
function samplesOf(name: string, type: string, { bounds, inBucket, sum, count }: BucketCounts) {
  const sharedLabels = { type }
  let upTo = 0
  const buckets = Array.from(bounds, (le, bucket) => {
    upTo += inBucket[bucket] ?? 0
    return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: upTo }
  })
  return [
    ...buckets,
    { metricName: `${name}_bucket`, labels: { le: '+Inf' }, sharedLabels, value: count },
    { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
    { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
  ]
}
