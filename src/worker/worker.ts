import type { AnyJob } from '../job/definition.ts'
import type { WorkerOptions, WorkerParts } from './options.ts'

/** A running worker. */
export interface Worker {
  readonly id: string
  /** Jobs whose handlers run now. */
  readonly running: number
  /**
   * Takes no more jobs, waits up to `drain` for running handlers, then aborts them and gives their jobs back (I8).
   * Legal twice: the second call returns the same promise.
   */
  stop(cause?: string): Promise<void>
  /** Resolves when the worker has stopped. */
  readonly stopped: Promise<void>
}

export async function startWorker(
  _parts: WorkerParts,
  _jobs: readonly AnyJob[],
  _options: WorkerOptions,
): Promise<Worker> {
  throw new Error('worker')
}
