/** What the client and worker cases are made of: small jobs, and what a mill's workers did. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Mill } from '../src/client/mill.ts'
import type { Outcome } from '../src/engine/outcome.ts'
import { defineJob, type HandledJob, type JobSpec } from '../src/job/definition.ts'
import type { Stage } from './stage.ts'

/** Long enough for any case on any engine; virtual clocks jump over it. */
export const SOON_MS = 5_000

type Number = StandardSchemaV1<{ readonly n: number }, { readonly n: number }>

/** `{ n: number }`, written out so that the suite needs no schema library. */
export const numbered: Number = {
  '~standard': {
    version: 1,
    vendor: 'millrace',
    validate: (value) => {
      const n: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'n') : undefined
      return typeof n === 'number' ? { value: { n } } : { issues: [{ message: 'expected { n: number }' }] }
    },
  },
}

type Spec = Omit<JobSpec<Number, unknown>, 'type' | 'payload'>

/** A job of the case's own type. Default: retries at once. */
export function numberedJob(
  stage: Stage,
  spec: Spec = {},
  type: string = stage.type,
): HandledJob<{ readonly n: number }, { readonly n: number }, unknown> {
  return defineJob({
    type,
    payload: numbered,
    lease: stage.leaseMs,
    backoff: { kind: 'fixed', delay: 0 },
    ...spec,
  })
}

/** Every settlement and loss of a mill's workers, as they happen. */
export interface Record {
  readonly settled: readonly { readonly id: string; readonly attempt: number; readonly outcome: Outcome }[]
  readonly lost: readonly { readonly id: string; readonly reason: string }[]
  kinds(id: string): readonly string[]
}

export function record(mill: Mill): Record {
  const settled: { id: string; attempt: number; outcome: Outcome }[] = []
  const lost: { id: string; reason: string }[] = []
  mill.events.on('job.settled', ({ job, attempt, outcome }) => settled.push({ id: job.id, attempt, outcome }))
  mill.events.on('lease.lost', ({ job, reason }) => lost.push({ id: job.id, reason }))
  return {
    settled,
    lost,
    kinds: (id) => settled.filter((entry) => entry.id === id).map(({ outcome }) => outcome.kind),
  }
}

/** The most entries of `timesMs` that any window of `perMs` holds. */
export function busiestWindow(timesMs: readonly number[], perMs: number): number {
  const counts = timesMs.map((fromMs) => timesMs.filter((atMs) => atMs >= fromMs && atMs - fromMs < perMs).length)
  return Math.max(0, ...counts)
}

/** Counts how many run at once. */
export function meter(): { enter(): void; leave(): void; readonly most: number } {
  const state = { now: 0, most: 0 }
  return {
    enter: () => {
      state.now += 1
      state.most = Math.max(state.most, state.now)
    },
    leave: () => {
      state.now -= 1
    },
    get most() {
      return state.most
    },
  }
}
