import pg from 'pg'

/** A statement that a case holds up on purpose holds up virtual time for no longer than this. */
const HELD_UP_MS = 2_000

const sinceMs = new Map<PromiseLike<unknown>, number>()

// From the first call on, also of those that are made before time moves.
watchCalls()

/**
 * Waits, while virtual time stands still, for the statements and connections that this process has asked Postgres for. On a
 * busy machine a renewal may take longer than a lease of virtual time.
 */
export async function callsAnswered(): Promise<void> {
  while (sinceMs.size > 0) {
    const heldUpMs = performance.now() - HELD_UP_MS
    for (const [call, sentMs] of sinceMs) if (sentMs < heldUpMs) sinceMs.delete(call)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

function watchCalls(): void {
  for (const [prototype, name] of [
    [pg.Client.prototype, 'query'],
    [pg.Pool.prototype, 'connect'],
  ] as const) {
    const send: unknown = Reflect.get(prototype, name)
    if (typeof send !== 'function') throw new Error(`the driver has no ${name}`)
    Object.assign(prototype, {
      [name](this: unknown, ...given: unknown[]): unknown {
        const answer: unknown = Reflect.apply(send, this, given)
        if (answer instanceof Promise) {
          sinceMs.set(answer, performance.now())
          const forget = () => void sinceMs.delete(answer)
          answer.then(forget, forget)
        }
        return answer
      },
    })
  }
}
