import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import type { StreamEvents } from '../api/shapes.ts'
import type { Live, LiveState } from './live.ts'
import { Pacer } from './pacer.ts'

export const LiveContext = createContext<Live | null>(null)

function useLive(): Live {
  const live = useContext(LiveContext)
  if (live === null) throw new Error('a page was drawn without the event stream')
  return live
}

/** Calls the newest listener at every event of that name. */
export function useStream<Name extends keyof StreamEvents>(
  name: Name,
  listener: (event: StreamEvents[Name]) => void,
): void {
  const live = useLive()
  const newest = useRef(listener)
  newest.current = listener
  useEffect(() => live.on(name, (event) => newest.current(event)), [live, name])
}

export function useLiveState(): LiveState {
  const live = useLive()
  const [state, setState] = useState(live.state)
  useEffect(() => {
    setState(live.state)
    return live.onState(setState)
  }, [live])
  return state
}

interface Freshness {
  /** Events after which the data may be stale. */
  readonly on: readonly (keyof StreamEvents)[]
  /** Only such events count. */
  readonly only?: (event: unknown) => boolean
  /** At most this often. */
  readonly atMostEveryMs?: number
  /** At least this often, for changes by other processes; default: never. */
  readonly everyMs?: number | null
}

/** Reloads after events, one load at a time, and never while the page is hidden. */
export function useFresh(reload: () => Promise<void>, freshness: Freshness): void {
  const live = useLive()
  const newest = useRef({ reload, freshness })
  newest.current = { reload, freshness }
  const { everyMs = null, atMostEveryMs = 1_000 } = freshness
  const names = freshness.on.join(' ')
  useEffect(() => {
    const pacer = new Pacer(() => newest.current.reload(), atMostEveryMs)
    const ask = (event?: unknown): void => {
      const { only } = newest.current.freshness
      if (document.hidden || (event !== undefined && only !== undefined && !only(event))) return
      pacer.ask()
    }
    const offs = newest.current.freshness.on.map((name) => live.on(name, ask))
    const offBack = live.onBack(() => ask())
    const timer = everyMs === null ? null : setInterval(() => ask(), everyMs)
    return () => {
      pacer.stop()
      offBack()
      for (const off of offs) off()
      if (timer !== null) clearInterval(timer)
    }
    // The names identify the list, which is a new array each time.
  }, [live, names, everyMs, atMostEveryMs])
}
