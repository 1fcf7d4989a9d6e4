/** How a trace follows a job from whoever enqueues it to whoever runs it. Nothing here knows who traces. */
import type { NewJob, StoredJob } from './job.ts'

/** One start of a job, as a tracer is told of it. */
export interface TracedStart {
  readonly job: StoredJob
  readonly attempt: number
  readonly worker: string
}

/** Stands around the two places where a job passes from one process to another. */
export interface Tracer {
  /** Calls `store` with the jobs as they are to be stored: with the trace that they belong to. */
  enqueue<T>(jobs: readonly NewJob[], store: (jobs: readonly NewJob[]) => Promise<T>): Promise<T>
  /** Calls `run`, once and at once, so that whatever it does belongs to the trace of the job. */
  run(start: TracedStart, run: () => void): void
}

/** Where a mill's tracer stands. Null costs nothing but this look. */
export interface Tracing {
  tracer: Tracer | null
}
