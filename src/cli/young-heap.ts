import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** What is claimed at once, with all that is made of it, has room in this, so most of it is never copied. */
const YOUNG_BYTES = 8 * 1_024 * 1_024

/**
 * Keeps V8 from growing its young generation for long. A busy worker makes much that lives for milliseconds, and V8 answers
 * with up to 100 MB of new space that it never gives back. No loss of rate was seen beyond the noise of the machine
 * with as much as this; with V8's first megabyte a worker on Kafka spent a quarter of its time copying. For a process
 * that is ours alone: a program that embeds Millrace decides for itself.
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
