import { useEffect, useRef, useState } from 'preact/hooks'
import type { Problem, Result } from '../../api/client.ts'
import type { BulkAnswer, BulkOutcome } from '../../api/shapes.ts'
import type { Selection } from './selection-words.ts'

export interface Count {
  /** Null until the server has counted. Its `selection` is exactly what was counted. */
  readonly outcome: BulkOutcome | null
  readonly problem: Problem | null
}

/**
 * Counts by a dry run what an action would affect, again when `force` changes. Later counts use the selection of the first,
 * so that letters which die in the meantime are not added.
 */
export function useCount(
  selection: Selection,
  force: boolean,
  dryRun: (selection: Selection, signal: AbortSignal) => Promise<Result<BulkAnswer>>,
): Count {
  const [count, setCount] = useState<Count>({ outcome: null, problem: null })
  const counted = useRef(selection)
  const ask = useRef(dryRun)
  ask.current = dryRun
  // Asked again for another `force`, which the latest `dryRun` has in it.
  useEffect(() => {
    const over = new AbortController()
    setCount({ outcome: null, problem: null })
    void ask.current(counted.current, over.signal).then((result) => {
      if (over.signal.aborted) return
      const outcome = result.ok ? result.value.outcome : null
      if (outcome !== null) counted.current = outcome.selection
      setCount({ outcome, problem: result.ok ? null : result.problem })
    })
    return () => over.abort()
  }, [force])
  return count
}
