import { useEffect, useState } from 'preact/hooks'

/** The server's clock: relative times would be wrong on a machine with a wrong clock. */
let aheadMs = 0
const listeners = new Set<() => void>()
let ticking: ReturnType<typeof setInterval> | null = null

export const nowMs = (): number => Date.now() + aheadMs

export function hearServerTime(atMs: number): void {
  const difference = atMs - Date.now()
  // Smaller differences are latency, not a wrong clock.
  aheadMs = Math.abs(difference) > 5_000 ? difference : 0
}

/** The current time, updated every second; one timer for the whole page. */
export function useNow(): number {
  const [now, setNow] = useState(nowMs)
  useEffect(() => {
    const onTick = (): void => setNow(nowMs())
    listeners.add(onTick)
    ticking ??= setInterval(() => {
      if (!document.hidden) for (const listener of listeners) listener()
    }, 1_000)
    return () => {
      listeners.delete(onTick)
      if (listeners.size > 0 || ticking === null) return
      clearInterval(ticking)
      ticking = null
    }
  }, [])
  return now
}
