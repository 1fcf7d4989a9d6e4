import { useCallback, useEffect, useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { HistoryPoint } from '../../api/shapes.ts'
import { useFresh, useStream } from '../../live/context.ts'

const POINTS_MAX = 900

export interface History {
  readonly points: readonly HistoryPoint[]
  /** Between two points. */
  readonly stepMs: number
}

/** The last minutes, with each new point as it comes. */
export function useHistory(): History {
  const api = useApi()
  const [points, setPoints] = useState<readonly HistoryPoint[]>([])
  const [stepMs, setStepMs] = useState(2_000)
  const load = useCallback(async () => {
    const result = await api.call('showHistory', {})
    if (!result.ok) return
    setPoints(result.value.points)
    setStepMs(result.value.stepMs)
  }, [api])
  useEffect(() => void load(), [load])
  useStream('point', (point) => {
    setPoints((all) => (point.atMs <= (all.at(-1)?.atMs ?? 0) ? all : [...all, point].slice(-POINTS_MAX)))
  })
  useFresh(load, { on: [] })
  return { points, stepMs }
}
