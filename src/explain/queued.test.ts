import {
  after,
  beat,
  dead,
  error,
  event,
  limit,
  NOW,
  pause,
  peers,
  presence,
  type Row,
  running,
  testRows,
  view,
} from '../../test/fixtures/explained.ts'
import type { Beat } from '../engine/presence.ts'
import type { JobView } from '../job/job.ts'

/** A worker with a free slot for which jobs age. */
function ageing(instance: string, ageingMs: number | null): Beat {
  const idle = beat({ instance })
  return idle.work === undefined || ageingMs === null ? idle : { ...idle, work: { ...idle.work, ageingMs } }
}

const HELD_BACK: readonly Row[] = [
  {
    what: 'delayed as it was enqueued',
    given: { job: view({ runAtMs: NOW + 1 }) },
    reasons: ['delayed'],
    main: { kind: 'delayed', untilMs: NOW + 1, putOff: { by: 'enqueue' } },
  },
  {
    what: 'delayed by its backoff',
    given: {
      job: view({ runAtMs: NOW + 1, attempt: 1, error }),
      history: [event('enqueued'), event('failed'), event('retried', { delayMs: 5 })],
    },
    reasons: ['delayed'],
    main: { kind: 'delayed', putOff: { by: 'retry', attempt: 1, attempts: 3, error } },
  },
  {
    what: 'given back by one that was offline',
    given: { job: view({ runAtMs: NOW + 1 }), history: [event('released', { reason: 'offline', delayMs: 5 })] },
    reasons: ['delayed'],
    main: { kind: 'delayed', putOff: { by: 'release', reason: 'offline' } },
  },
  {
    what: 'waiting for one of two',
    given: { job: view(after('wait', 'a', 'b')), predecessors: [view({ id: 'a', state: 'completed' }), running('b')] },
    reasons: ['waits-for-jobs'],
    main: { kind: 'waits-for-jobs', of: 2, ifDead: 'wait', jobs: [{ id: 'b', type: 'mail', state: 'in_progress' }] },
  },
  {
    what: 'waiting for a dead one to be replayed',
    given: { job: view(after('wait', 'a')), predecessors: [dead('a')] },
    reasons: ['waits-for-jobs'],
    main: { kind: 'waits-for-jobs', jobs: [{ id: 'a', type: 'mail', state: 'dead_letter' }] },
  },
  {
    what: 'running all the same after a dead one',
    given: { job: view(after('run', 'a')), predecessors: [dead('a')] },
    reasons: ['due'],
    notes: [],
  },
  {
    what: 'dying with a dead one',
    given: { job: view(after('die', 'a')), predecessors: [dead('a')] },
    reasons: ['due'],
    notes: ['will-die'],
  },
  {
    what: 'dying because of one that was cancelled',
    given: { job: view(after('wait', 'a')), predecessors: [view({ id: 'a', state: 'cancelled' })] },
    reasons: ['due'],
    notes: ['will-die'],
  },
  {
    what: 'behind more than were looked up',
    given: { job: view(after('wait', 'a', 'b', 'c')), predecessors: [view({ id: 'a', state: 'completed' })] },
    reasons: ['waits-for-jobs'],
    main: { kind: 'waits-for-jobs', jobs: [], of: 3, notLookedUp: 2 },
  },
  {
    what: 'behind an older version of its latest key',
    given: {
      job: view({ latestKey: 'k' }),
      peers: peers({ inProgress: [running('x', { latestKey: 'other' }), running('01A', { latestKey: 'k' })] }),
    },
    reasons: ['older-version-runs'],
    main: { kind: 'older-version-runs', job: { id: '01A', type: 'mail', state: 'in_progress' } },
  },
  { what: 'of a paused type', given: { pause }, reasons: ['paused'], main: { kind: 'paused', pause } },
  {
    what: 'held back by several things at once, what ends last first',
    given: {
      job: view({ ...after('wait', 'a'), runAtMs: NOW + 1 }),
      predecessors: [running('a')],
      pause,
      presence: presence([]),
    },
    reasons: ['waits-for-jobs', 'delayed', 'paused', 'no-worker'],
  },
]

const started = (id: string, agoMs: number): JobView => view({ id, state: 'completed', startedAtMs: NOW - agoMs })

const CROWDED: readonly Row[] = [
  {
    what: 'over its rate limit',
    given: {
      definition: { limit, concurrency: null, slots: null },
      peers: peers({
        inProgress: [running('x', { startedAtMs: NOW - 10_000 })],
        completed: [started('y', 40_000), started('z', 60_000)],
      }),
    },
    reasons: ['limit-reached'],
    main: { kind: 'limit-reached', max: 2, untilMs: NOW + 20_000 },
  },
  {
    what: 'below its rate limit, as far as can be seen',
    given: {
      definition: { limit, concurrency: null, slots: null },
      peers: peers({ completed: [started('y', 1), started('z', 60_000)] }),
    },
    reasons: ['due'],
  },
  {
    what: 'without a definition, and with starts that a limit may count',
    given: { definition: null, peers: peers({ completed: [started('y', 1)] }) },
    reasons: ['due'],
    notes: ['maybe-limited'],
  },
  {
    what: 'without a worker, one being missed and one stopping',
    given: {
      presence: presence(
        [beat({ status: 'SHUTTING_DOWN', instance: 'w2', stoppingSinceMs: NOW }), beat({ type: 'other' })],
        [beat({ instance: 'w2' }), beat({ instance: 'w3', atMs: NOW - 90_000 })],
      ),
    },
    reasons: ['no-worker'],
    main: { kind: 'no-worker', stopping: ['w2'], missing: [{ worker: 'w3', seenAtMs: NOW - 90_000 }] },
  },
  {
    what: 'with a worker that never says that it lives',
    given: { presence: presence([]), peers: peers({ inProgress: [running('x', { leaseOwner: 'foreign' })] }) },
    reasons: ['due'],
  },
  {
    what: 'with nothing but a worker that stops and still runs another',
    given: {
      presence: presence([beat({ status: 'SHUTTING_DOWN', stoppingSinceMs: NOW })]),
      peers: peers({ inProgress: [running('x')] }),
    },
    reasons: ['no-worker'],
  },
  {
    what: 'with nothing but the expired lease of a worker that is gone',
    given: { presence: presence([]), peers: peers({ inProgress: [running('x', { leaseUntilMs: NOW })] }) },
    reasons: ['no-worker'],
  },
  {
    what: 'behind full slots, taken by two types',
    given: { presence: presence([beat({}, 1), beat({ type: 'bill' }, 1)]) },
    reasons: ['slots-busy'],
    main: {
      kind: 'slots-busy',
      workers: ['w1'],
      jobs: [
        { id: 'mail-0', type: 'mail', state: 'in_progress' },
        { id: 'bill-0', type: 'bill', state: 'in_progress' },
      ],
    },
  },
  {
    what: 'with one full worker and one that has room',
    given: { presence: presence([beat({}, 2), beat({ instance: 'w2' }, 1)]) },
    reasons: ['due'],
  },
  {
    what: 'behind the concurrency of its own type',
    given: { presence: presence([beat({}, 1)]), definition: { limit: null, concurrency: 1, slots: null } },
    reasons: ['slots-busy'],
  },
  {
    what: 'behind others: a more urgent one and an older one, but none that is later, delayed or waits itself',
    given: {
      peers: peers({
        queued: [
          view({ id: '01X', priority: 1 }),
          view({ id: '01A' }),
          view({ id: '01C' }),
          view({ id: '01D', priority: 1, runAtMs: NOW + 1 }),
          view({ id: '01E', priority: 1, ...after('wait', 'a') }),
          view(),
        ],
      }),
    },
    reasons: ['others-first'],
    main: { kind: 'others-first', count: 2, isLeast: false },
  },
  // X119
  {
    what: 'raised by its wait above newer jobs, but not above an urgent one',
    given: {
      job: view({ priority: 10, runAtMs: NOW - 40 * 60_000 }),
      presence: presence([ageing('w1', 600_000)]),
      peers: peers({
        queued: [view({ id: '01X', priority: 5 }), view({ id: '01Y', priority: 6 }), view({ id: '01Z', priority: 9 })],
      }),
    },
    reasons: ['others-first'],
    main: { kind: 'others-first', count: 1, isLeast: false },
    notes: ['aged'],
  },
  // X119
  {
    what: 'behind those that come first for each worker, where one of two raises jobs that wait',
    given: {
      job: view({ priority: 10, runAtMs: NOW - 40 * 60_000 }),
      presence: presence([ageing('w1', 600_000), ageing('w2', null)]),
      peers: peers({ queued: [view({ id: '01X', priority: 5 }), view({ id: '01Y', priority: 6 })] }),
    },
    reasons: ['others-first'],
    main: { kind: 'others-first', count: 1, isLeast: false },
  },
  {
    what: 'behind more than were looked at, while all slots are taken',
    given: { presence: presence([beat({}, 2)]), peers: peers({ queued: [view({ id: '01A' })] }, false) },
    reasons: ['slots-busy', 'others-first'],
  },
  {
    what: 'due, and nobody knows who works',
    given: { presence: null },
    reasons: ['due'],
    main: { kind: 'due', workers: null },
  },
  {
    what: 'due, and its only worker has long done nothing',
    given: { presence: presence([beat({ lastJobAtMs: NOW - 600_000 })]) },
    reasons: ['due'],
    notes: ['quiet-workers'],
  },
  {
    what: 'due, and its worker works for another type',
    given: { presence: presence([beat({ lastJobAtMs: null }), beat({ type: 'bill' })]) },
    reasons: ['due'],
    notes: [],
  },
  {
    what: 'due just now: nothing to wonder about',
    given: { job: view({ runAtMs: NOW }), presence: presence([beat({ lastJobAtMs: NOW - 600_000 })]) },
    reasons: ['due'],
    notes: [],
  },
]

testRows([...HELD_BACK, ...CROWDED])
