import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Problem } from './client.ts'
import { useApi } from './context.ts'
import type { Answer, Request, RouteId, Routes } from './shapes.ts'

export interface Loaded<Value> {
  /** The last good answer. It stays while a newer one loads or fails. */
  readonly value: Value | null
  readonly problem: Problem | null
  readonly isLoading: boolean
  /** Loads again. A load under way may return old data, so another follows it. */
  readonly reload: () => Promise<void>
}

/** Asks a route when the page appears and whenever the request changes. */
export function useAnswer<Id extends RouteId>(id: Id, request: Request<Routes[Id]>): Loaded<Answer<Routes[Id]>> {
  const api = useApi()
  const [value, setValue] = useState<Answer<Routes[Id]> | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isLoading, setLoading] = useState(true)
  const underWay = useRef<Promise<void> | null>(null)
  const follower = useRef<Promise<void> | null>(null)
  const abort = useRef(new AbortController())
  const key = JSON.stringify(request)
  const latest = useRef(request)
  latest.current = request

  const load = useCallback(async (): Promise<void> => {
    const { signal } = abort.current
    const result = await api.call(id, latest.current, signal)
    if (signal.aborted) return
    underWay.current = null
    setLoading(false)
    if (result.ok) setValue(result.value)
    setProblem(result.ok ? null : result.problem)
  }, [api, id])

  const reload = useCallback((): Promise<void> => {
    const start = (): Promise<void> => {
      follower.current = null
      underWay.current = load()
      return underWay.current
    }
    if (underWay.current === null) return start()
    follower.current ??= underWay.current.then(start)
    return follower.current
  }, [load])

  // The key identifies the request, which is a new object each time.
  useEffect(() => {
    abort.current = new AbortController()
    setLoading(true)
    underWay.current = load()
    return () => abort.current.abort()
  }, [load, key])

  return { value, problem, isLoading, reload }
}
