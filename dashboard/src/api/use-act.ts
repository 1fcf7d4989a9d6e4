import { useState } from 'preact/hooks'
import type { Problem, Result } from './client.ts'

export interface Act<Value> {
  readonly isBusy: boolean
  readonly problem: Problem | null
  /** Runs one at a time; resolves with null when it failed or one is running. */
  readonly run: () => Promise<Value | null>
  readonly clear: () => void
}

/** One write, with its state for the button and its problem for the form. */
export function useAct<Value>(act: () => Promise<Result<Value>>): Act<Value> {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const run = async (): Promise<Value | null> => {
    if (isBusy) return null
    setBusy(true)
    setProblem(null)
    const result = await act()
    setBusy(false)
    if (result.ok) return result.value
    setProblem(result.problem)
    return null
  }
  return { isBusy, problem, run, clear: () => setProblem(null) }
}
