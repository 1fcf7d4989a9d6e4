import type { Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'

/** What a bare store works with: it completes what is held and claims the next, at most `max`, in one step. */
export type Turn<Held extends { readonly payload: Payload }> = (
  held: readonly Held[],
  max: number,
) => Promise<readonly Held[]>

const EMPTY_MS = 5

/** Loops over turns until told to stop, and then until nothing is held. */
export function workInTurns<Held extends { readonly payload: Payload }>(
  request: WorkRequest,
  turn: Turn<Held>,
  { loops, size }: { readonly loops: number; readonly size: number },
): Working {
  let going = true
  const loop = async (): Promise<void> => {
    let held: readonly Held[] = []
    while (going || held.length > 0) {
      held = await turn(held, going ? size : 0)
      await Promise.all(held.map((each) => request.onJob(each.payload)))
      await new Promise((resolve) => (held.length === 0 ? setTimeout(resolve, EMPTY_MS) : setImmediate(resolve)))
    }
  }
  const ended = Promise.all(Array.from({ length: loops }, loop)).catch(request.onError)
  return {
    stop: async () => {
      going = false
      await ended
    },
  }
}
