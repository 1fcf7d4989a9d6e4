import { type Clock, sleepWith, watchEvery } from '../../time/clock.ts'
import type { RedisDatabase } from './database.ts'
import { listOf } from './rows.ts'
import { compose } from './scripts.ts'

/** How soon a finish in another process is seen. One script asks for all waiters. */
const POLL_MS = 30

interface Waiter {
  readonly queue: string
  readonly bullId: string
  wake(): void
}

/** Wakes those who wait for a job when it may have finished. Without waiters nothing is polled. */
export class FinishWaits {
  readonly #database: RedisDatabase
  readonly #clock: Clock
  readonly #waiters = new Set<Waiter>()
  #changes = 0
  #isAsking = false
  #stop: (() => void) | null = null

  constructor(database: RedisDatabase, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Read it before reading the job, so that `wait` does not miss a change in between. */
  get changes(): number {
    return this.#changes
  }

  /** Something finished in this process: every waiter looks again. */
  notify(): void {
    if (this.#waiters.size === 0) return
    this.#changes += 1
    for (const { wake } of [...this.#waiters]) wake()
  }

  /** Resolves when the job may have finished, after `ms` of the injected clock, or when `signal` aborts. */
  async wait(
    job: { readonly queue: string; readonly bullId: string },
    { ms, seen, signal }: { readonly ms: number; readonly seen: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (seen !== this.#changes) return
    const woken = new AbortController()
    const waiter: Waiter = { queue: job.queue, bullId: job.bullId, wake: () => woken.abort() }
    this.#waiters.add(waiter)
    this.#stop ??= watchEvery(POLL_MS, () => void this.#ask())
    try {
      await sleepWith((delayMs, run) => this.#clock.after(delayMs, run), ms, AbortSignal.any([signal, woken.signal]))
    } finally {
      this.#waiters.delete(waiter)
      this.#rest()
    }
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    const asked = [...this.#waiters]
    try {
      const answer = await this.#database.run(
        overScript(),
        asked.flatMap(({ queue, bullId }) => [queue, bullId]),
      )
      for (const [index, isOver] of listOf(answer).entries()) if (isOver === 1) asked[index]?.wake()
    } catch {
      // The server is unreachable. If it is still so when a wait ends, the next read reports it.
    } finally {
      this.#isAsking = false
    }
  }

  #rest(): void {
    if (this.#waiters.size > 0) return
    this.#stop?.()
    this.#stop = null
  }

  /** Waiters look once more. */
  close(): void {
    this.notify()
  }
}

/** ARGV: time, then for each job: queue, BullMQ's id. Answers 1 for each that has finished or is gone. */
const overScript = compose(
  'over',
  {},
  `
local answers = {}
for at = 2, #ARGV, 2 do
  local fields = call('HMGET', queueOf(ARGV[at]).base .. ARGV[at + 1], 'name', 'finishedOn', 'mrEnded')
  answers[at / 2] = (not fields[1] or fields[2] or fields[3]) and 1 or 0
end
return answers
`,
)
