import { OptionError, PredecessorError } from '../errors.ts'
import type { ErrorRecord, JobView, Predecessors } from './job.ts'
import { type EnqueueOptions, KEY_LENGTH_MAX } from './options.ts'

/** A job that another one came after, as the handler of the later job sees it. */
export interface Predecessor {
  readonly id: string
  /** Null if the job was removed. */
  readonly type: string | null
  readonly state: 'completed' | 'dead' | 'cancelled' | 'superseded' | 'discarded' | 'removed'
  /** What its handler returned. Null unless it completed. */
  readonly result: unknown
  readonly error: ErrorRecord | null
}

/** They are looked up before the handler runs, and all their results are in memory at once. */
export const PREDECESSORS_MAX = 1_000

const POLICIES: readonly Predecessors['ifDead'][] = ['wait', 'run', 'die']

/** Null if there is nothing to wait for. A job given twice counts once. */
export function checkAfter({
  after,
  ifDead,
  latest,
}: Pick<EnqueueOptions, 'after' | 'ifDead' | 'latest'>): Predecessors | null {
  if (ifDead !== undefined && !POLICIES.includes(ifDead)) {
    throw new OptionError(`'ifDead' is '${ifDead}'; give 'wait', 'run' or 'die'`)
  }
  if (after === undefined) {
    if (ifDead === undefined) return null
    throw new OptionError(`'ifDead' has no effect without 'after'; add 'after'`)
  }
  const given = typeof after === 'string' || 'id' in after ? [after] : after
  const ids = [...new Set(given.map((one) => checkId(typeof one === 'string' ? one : one?.id)))]
  if (ids.length > PREDECESSORS_MAX) {
    throw new OptionError(
      `'after' has ${ids.length} jobs, at most ${PREDECESSORS_MAX}; split them: let intermediate jobs collect parts`,
    )
  }
  if (latest !== undefined) {
    throw new OptionError(`'after' and 'latest' contradict each other: a waiting version could not keep its place`)
  }
  return ids.length === 0 ? null : { ids, ifDead: ifDead ?? 'wait' }
}

function checkId(id: unknown): string {
  if (typeof id === 'string' && id.length > 0 && id.length <= KEY_LENGTH_MAX) return id
  throw new OptionError(`'after' takes ids or receipts of jobs; ${JSON.stringify(id) ?? typeof id} is neither`)
}

/** Another program may have stored anything; a value of another shape counts as absent. */
export function readPredecessors(stored: unknown): Predecessors | null {
  if (typeof stored !== 'object' || stored === null) return null
  const ids: unknown = Reflect.get(stored, 'ids')
  const ifDead = POLICIES.find((policy) => policy === Reflect.get(stored, 'ifDead'))
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) return null
  return ids.length === 0 ? null : { ids, ifDead: ifDead ?? 'wait' }
}

/** Whether a claimed job that came after others may run. */
export type Readiness =
  | { readonly kind: 'run'; readonly after: readonly Predecessor[] }
  /** One of them is live again, because it was replayed. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'die'; readonly error: PredecessorError }

/** Pure. `found` is in the order of `ids`, with null for jobs that were removed. */
export function readinessOf({ ids, ifDead }: Predecessors, found: readonly (JobView | null)[]): Readiness {
  const after: Predecessor[] = []
  for (const [index, id] of ids.entries()) {
    const one = describe(id, found[index] ?? null)
    if (one === null) return { kind: 'wait' }
    after.push(one)
  }
  if (ifDead === 'run') return { kind: 'run', after }
  const ended = after.find(({ state }) => state !== 'completed' && state !== 'dead')
  if (ended !== undefined) return { kind: 'die', error: new PredecessorError(ended) }
  const dead = after.find(({ state }) => state === 'dead')
  if (dead === undefined) return { kind: 'run', after }
  return ifDead === 'wait' ? { kind: 'wait' } : { kind: 'die', error: new PredecessorError(dead) }
}

/** Null if the job has not finished. */
function describe(id: string, view: JobView | null): Predecessor | null {
  if (view === null) return { id, type: null, state: 'removed', result: null, error: null }
  const { type, error } = view
  switch (view.state) {
    case 'completed':
      return { id, type, state: 'completed', result: view.result, error: null }
    case 'dead_letter':
      return { id, type, state: 'dead', result: null, error }
    case 'cancelled':
    case 'superseded':
    case 'discarded':
      return { id, type, state: view.state, result: null, error }
    case 'queued':
    case 'in_progress':
    case 'failed':
      return null
    default:
      return view.state satisfies never
  }
}

/** Replaces the ids of duplicates with those of the jobs that they duplicate. */
export function redirect(after: Predecessors, duplicates: ReadonlyMap<string, string>): Predecessors {
  if (duplicates.size === 0) return after
  return { ...after, ids: [...new Set(after.ids.map((id) => duplicates.get(id) ?? id))] }
}
