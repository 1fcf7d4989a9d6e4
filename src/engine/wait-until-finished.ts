import type { JobView } from '../job/job.ts'
import { isFinished } from '../job/states.ts'
import type { Clock } from '../time/clock.ts'
import type { Inspector } from './engine.ts'

/**
 * The last view of jobs that were removed as they finished, for those in this process who wait for them. It is noted
 * inside the transaction, so that nobody finds the job gone and nothing here; if that is rolled back, the job is found.
 */
export class RemovedJobViews {
  readonly #expected = new Map<string, number>()
  readonly #views = new Map<string, JobView>()

  /** Returns what ends the waiting. */
  expect(id: string): () => void {
    this.#expected.set(id, (this.#expected.get(id) ?? 0) + 1)
    return () => {
      const left = (this.#expected.get(id) ?? 1) - 1
      if (left > 0) {
        this.#expected.set(id, left)
        return
      }
      this.#expected.delete(id)
      this.#views.delete(id)
    }
  }

  isExpected(id: string): boolean {
    return this.#expected.has(id)
  }

  tell(view: JobView): void {
    this.#views.set(view.id, view)
  }

  of(id: string): JobView | null {
    return this.#views.get(id) ?? null
  }
}

/** What one read of a job found, and how to wait for the next change. No change since the read is missed. */
interface JobRead {
  readonly view: JobView | null
  readonly changed: (ms: number) => Promise<void>
}

/** `waitFor` of an engine that wakes those who wait and reads the job again. */
export async function waitUntilFinished(
  {
    clock,
    removedViews,
    read,
  }: {
    readonly clock: Clock
    readonly removedViews: RemovedJobViews
    readonly read: () => Promise<JobRead>
  },
  id: string,
  { waitMs, signal }: Parameters<Inspector['waitFor']>[1],
): Promise<JobView | null> {
  const untilMs = clock.monotonicMs() + waitMs
  const stopExpecting = removedViews.expect(id)
  try {
    for (;;) {
      const { view: found, changed } = await read()
      const view = found ?? removedViews.of(id)
      const leftMs = untilMs - clock.monotonicMs()
      if (view === null || isFinished(view.state) || leftMs <= 0 || signal.aborted) return view
      await changed(leftMs)
    }
  } finally {
    stopExpecting()
  }
}
