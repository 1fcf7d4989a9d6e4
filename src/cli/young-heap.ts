import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** One batch of claimed jobs and everything made from it fits into this, so most of it is never copied. */
const YOUNG_BYTES = 8 * 1_024 * 1_024

/**
 * Stops V8 from growing its young generation. A busy worker allocates much that lives for milliseconds, and V8 answers
 * with up to 100 MB of new space that it never returns. At this size no loss of throughput was measured; with V8's
 * initial megabyte a worker on Kafka spent a quarter of its time copying. Only for processes that Millrace owns: a
 * program that embeds Millrace decides for itself.
 */
export function boundYoungHeap(): void {
  const observer = new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
    if (young === undefined || young.space_size < YOUNG_BYTES) return
    setFlagsFromString('--semi-space-growth-factor=1')
    observer.disconnect()
  })
  observer.observe({ entryTypes: ['gc'] })
}
