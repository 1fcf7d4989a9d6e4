import { type ReaperParts, reapOnce } from '../keeper/reaper.ts'

const BATCH = 500
/** Workers that were started together must not reap together. */
const JITTER = 0.1

/** Reaps at once and then every `everyMs`, give or take a tenth. Returns the stopper, which waits for a pass under way. */
export function reapRegularly(parts: ReaperParts, everyMs: number): () => Promise<void> {
  const stop = new AbortController()
  const loop = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      try {
        await reapOnce(parts, BATCH, stop.signal)
      } catch (error) {
        parts.events.emit('worker.error', { worker: parts.worker, during: 'reap', error })
      }
      await parts.clock.sleep(everyMs * (1 - JITTER + 2 * JITTER * parts.random()), stop.signal)
    }
  }
  const done = loop()
  return async () => {
    stop.abort()
    await done
  }
}
