import type { Lease } from '../../src/engine/outcome.ts'
import type { Alteration } from '../alter.ts'

/** An engine with one deliberate flaw. The suite must find it. */
export interface Mutant {
  /** What is wrong with it, as a sentence. */
  readonly flaw: string
  /** The case that was written to find this flaw; others may find it too. */
  readonly killer: string
  /** Called once per store: whatever the flaw has to remember is shared by all views. */
  alter(): Alteration
}

/** The newest lease of every job, as a flawed engine might remember it. */
export class Newest {
  readonly #byJob = new Map<string, Lease>()

  note(leases: readonly Lease[]): readonly Lease[] {
    for (const lease of leases) this.#byJob.set(lease.job.id, lease)
    return leases
  }

  of(lease: Lease): Lease {
    return this.#byJob.get(lease.job.id) ?? lease
  }

  forget(lease: Lease): void {
    this.#byJob.delete(lease.job.id)
  }

  all(): readonly Lease[] {
    return [...this.#byJob.values()]
  }
}
