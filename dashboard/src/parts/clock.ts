import { useEffect, useState } from 'preact/hooks'

/** The server's clock, as far as it has told: relative times are wrong on a machine whose own clock is. */
let aheadMs = 0
const listeners = new Set<() => void>()
let ticking: ReturnType<typeof setInterval> | null = null

export const nowMs = (): number => Date.now() + aheadMs

export function hearServerTime(atMs: number): void {
  const difference = atMs - Date.now()
  // A message travels for a while; smaller differences are that, not a wrong clock.
  aheadMs = Math.abs(difference) > 5_000 ? difference : 0
}

/** The time, told again every second as long as something shows it; one timer for the whole page. */
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
