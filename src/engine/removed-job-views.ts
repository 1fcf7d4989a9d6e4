import type { JobView } from '../job/job.ts'

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
