/** An engine that writes down every call and answer, and changes nothing. */
import type { DeadLetters, DeskAction } from '../../src/engine/dead-letters.ts'
import type { Consumer, Controls, Engine, Subscription } from '../../src/engine/engine.ts'
import type { Lease, Lost, Outcome } from '../../src/engine/outcome.ts'
import type { RecordKind, Records } from '../../src/engine/records.ts'
import type { Retention } from '../../src/engine/retention.ts'
import type { NewJob, StoredJob, Tenant } from '../../src/job/job.ts'
import { replaced } from '../../src/testing/replaced.ts'
import type { AskedJob, AskedOutcome, Call, GivenLease } from './entry.ts'
import { digestOf, type Recorder } from './recorder.ts'

/** Heartbeats and leadership are renewed all the time, and no rule judges them. */
const RECORDED_KINDS: readonly RecordKind[] = ['schedule', 'pause']

/**
 * Wraps an engine so that its history can be judged. A transaction of the user's own is known by `nameOf`; the caller
 * notes how it ended.
 *
 * @example
 * const mill = await open(recorded(engine, recorder))
 */
export function recorded(
  engine: Engine,
  recorder: Recorder,
  nameOf: (within: object) => string = () => 'unnamed',
): Engine {
  const changes = new Map<PropertyKey, unknown>([
    [
      'enqueue',
      (...[jobs, within]: Parameters<Engine['enqueue']>) =>
        recorder.call(
          {
            what: 'enqueue',
            jobs: jobs.map(askedJob),
            ...(within !== undefined && { transaction: nameOf(within) }),
          },
          () => engine.enqueue(jobs, within),
          (receipts) => ({ what: 'enqueued', receipts }),
        ),
    ],
    ['consume', (subscription: Subscription) => consume(engine, subscription, recorder)],
    [
      'close',
      () =>
        recorder.call(
          { what: 'close' },
          () => engine.close(),
          () => ({ what: 'closed' }),
        ),
    ],
  ])
  const { controls, deadLetters, records, retention } = engine
  if (controls !== undefined) changes.set('controls', recordedControls(controls, recorder))
  if (deadLetters !== undefined) changes.set('deadLetters', recordedDesk(deadLetters, recorder))
  if (records !== undefined) changes.set('records', recordedRecords(records, recorder))
  if (retention !== undefined) changes.set('retention', recordedRetention(retention, recorder))
  return replaced(engine, changes)
}

async function consume(engine: Engine, subscription: Subscription, recorder: Recorder): Promise<Consumer> {
  const { worker, types, ageingMs, isPaused } = subscription
  const asked: Call = {
    what: 'consume',
    worker,
    types:
      types === 'every'
        ? types
        : types.map(({ type, leaseMs, limit, slots }) => ({
            ...{ type, leaseMs },
            ...(limit !== undefined && { limit }),
            ...(slots !== undefined && { slots }),
          })),
    ...(ageingMs !== undefined && { ageingMs }),
  }
  const consumer = await recorder.call(
    asked,
    () => engine.consume(subscription),
    () => ({ what: 'consuming' }),
  )
  const noteLost = ({ lease, reason }: Lost): void =>
    recorder.note({ what: 'lost', worker, id: lease.job.id, token: lease.token, reason })
  consumer.listen({ onLost: noteLost })
  const pausedNow = (): readonly string[] =>
    types === 'every' ? [] : types.map(({ type }) => type).filter((type) => isPaused?.(type) === true)
  return replaced(consumer, recordedCalls(consumer, worker, { recorder, noteLost, pausedNow }))
}

interface ConsumerNotes {
  readonly recorder: Recorder
  readonly noteLost: (lost: Lost) => void
  readonly pausedNow: () => readonly string[]
}

function recordedCalls(
  consumer: Consumer,
  worker: string,
  { recorder, noteLost, pausedNow }: ConsumerNotes,
): ReadonlyMap<PropertyKey, unknown> {
  const calls: Pick<Consumer, 'claim' | 'renew' | 'settle' | 'report' | 'close'> = {
    claim: (request) => {
      const { max, waitMs, from = 'ready', perType } = request
      const paused = pausedNow()
      const bounds = { ...(perType !== undefined && { perType }), ...(paused.length > 0 && { paused }) }
      return recorder.call(
        { what: 'claim', worker, max, waitMs, from, ...bounds },
        () => consumer.claim(request),
        (leases) => ({
          what: 'claimed',
          leases: leases.map(givenLease),
          ...(request.signal.aborted && { isGivenUp: true }),
        }),
      )
    },
    renew: async (leases, leaseMs) => {
      const lost = await consumer.renew(leases, leaseMs)
      for (const one of lost) noteLost(one)
      return lost
    },
    settle: (settlements) =>
      recorder.call(
        { what: 'settle', worker, outcomes: settlements.map(({ lease, outcome }) => askedOutcome(lease, outcome)) },
        () => consumer.settle(settlements),
        (refused) => ({
          what: 'settled',
          refused: refused.map(({ lease, reason }) => ({ id: lease.job.id, token: lease.token, reason })),
        }),
      ),
    report: (lease, progress) =>
      recorder.call(
        { what: 'report', worker, id: lease.job.id, token: lease.token },
        () => consumer.report(lease, progress),
        (isHeld) => ({ what: 'reported', isHeld }),
      ),
    close: () =>
      recorder.call(
        { what: 'leave', worker },
        () => consumer.close(),
        () => ({ what: 'left' }),
      ),
  }
  return new Map<PropertyKey, unknown>(Object.entries(calls))
}

function recordedControls(controls: Controls, recorder: Recorder): Controls {
  return {
    cancel: (id, by) =>
      recorder.call(
        { what: 'cancel', id },
        () => controls.cancel(id, by),
        (isDone) => ({ what: 'cancelled', isDone }),
      ),
  }
}

function recordedDesk(desk: DeadLetters, recorder: Recorder): DeadLetters {
  const record = (
    act: DeskAction,
    ids: readonly string[],
    by: { readonly who: string; readonly reason: string },
    make: () => Promise<readonly boolean[]>,
    edit?: string,
  ): Promise<readonly boolean[]> =>
    recorder.call(
      { what: 'desk', act, ids, who: by.who, reason: by.reason, ...(edit !== undefined && { edit }) },
      make,
      (done) => ({ what: 'desk-done', done }),
    )
  const changes: Pick<DeadLetters, 'requeue' | 'discard' | 'undiscard' | 'remove'> = {
    requeue: (ids, by, edit) =>
      record('replay', ids, by, () => desk.requeue(ids, by, edit), edit && digestOf(edit.payload)),
    discard: (ids, by) => record('discard', ids, by, () => desk.discard(ids, by)),
    undiscard: (ids, by) => record('undo', ids, by, () => desk.undiscard(ids, by)),
    remove: (ids, by, options) =>
      record(options?.erase === true ? 'erase' : 'purge', ids, by, () => desk.remove(ids, by, options)),
  }
  return replaced(desk, new Map<PropertyKey, unknown>(Object.entries(changes)))
}

function recordedRecords(records: Records, recorder: Recorder): Records {
  const changes: Pick<Records, 'save' | 'remove'> = {
    save: (kind, record, expected, options) => {
      const make = (): ReturnType<Records['save']> => records.save(kind, record, expected, options)
      if (!RECORDED_KINDS.includes(kind)) return make()
      const jobs = (options?.jobs ?? []).map(askedJob)
      return recorder.call({ what: 'save', kind, ...record, expected, jobs }, make, (receipts) => ({
        what: 'saved',
        receipts,
      }))
    },
    remove: (kind, names) => {
      const make = (): Promise<number> => records.remove(kind, names)
      if (!RECORDED_KINDS.includes(kind)) return make()
      return recorder.call({ what: 'remove', kind, names }, make, (count) => ({ what: 'removed', count }))
    },
  }
  return replaced(records, new Map<PropertyKey, unknown>(Object.entries(changes)))
}

function recordedRetention(retention: Retention, recorder: Recorder): Retention {
  const sweep: Retention['sweep'] = (rules, step) =>
    recorder.call(
      { what: 'sweep', rules, isDryRun: step.dryRun === true },
      () => retention.sweep(rules, step),
      ({ removed }) => ({ what: 'swept', removed }),
    )
  return replaced(retention, new Map<PropertyKey, unknown>([['sweep', sweep]]))
}

function askedJob(job: NewJob): AskedJob {
  const { id, type, priority, attempts, payload, payloadVersion, delayMs, runAtMs, key, latest, after, options } = job
  return {
    id,
    type,
    priority,
    attempts,
    digest: digestOf(payload),
    payloadVersion,
    ...(delayMs > 0 && { delayMs }),
    ...(runAtMs !== null && { runAtMs }),
    ...(key !== null && { key }),
    ...(latest !== null && { latest }),
    ...(after !== null && { after }),
    ...tenantOf(job.tenant),
    ...(options?.keepCompleted !== undefined && { keepCompleted: options.keepCompleted }),
    ...(options?.keepDead !== undefined && { keepDead: options.keepDead }),
  }
}

function givenLease({ job, attempt, token, expiresAtMs, verdict, failure }: Lease): GivenLease {
  const { id, type, payload, priority, runAtMs, key, latestKey, tenant }: StoredJob = job
  return {
    id,
    type,
    attempt,
    token,
    digest: digestOf(payload),
    priority,
    runAtMs,
    ...(expiresAtMs !== null && { untilMs: expiresAtMs }),
    ...(key !== null && { key }),
    ...(latestKey !== null && { latestKey }),
    ...tenantOf(tenant),
    ...(tenant?.workspaceId !== undefined && { orgId: tenant.orgId }),
    ...((verdict !== undefined || failure !== undefined) && { isJudged: true }),
  }
}

function tenantOf(tenant: Tenant | null): { readonly tenant?: string } {
  if (tenant === null) return {}
  const { orgId, workspaceId } = tenant
  return { tenant: workspaceId === undefined ? orgId : `${orgId}/${workspaceId}` }
}

function askedOutcome({ job, token }: Lease, outcome: Outcome): AskedOutcome {
  const { kind } = outcome
  const asked = { id: job.id, token, kind }
  switch (kind) {
    case 'complete':
      return { ...asked, digest: digestOf(outcome.result), ...keepOf(outcome) }
    case 'retry':
      return { ...asked, delayMs: outcome.delayMs, code: outcome.error.code }
    case 'dead':
      return { ...asked, code: outcome.error.code, ...keepOf(outcome) }
    case 'release':
      return { ...asked, delayMs: outcome.delayMs }
    default:
      return kind satisfies never
  }
}

function keepOf({ keep, keepIsOwn }: { readonly keep?: number; readonly keepIsOwn?: boolean }): Partial<AskedOutcome> {
  return { ...(keep !== undefined && { keep }), ...(keepIsOwn === true && { keepIsOwn }) }
}
