import {
  beat,
  dead,
  error,
  event,
  NOW,
  pause,
  presence,
  type Row,
  running,
  testRows,
  view,
} from '../../test/fixtures/explained.ts'

const OVER: readonly Row[] = [
  {
    what: 'completed, and by whom',
    given: {
      job: view({ state: 'completed', completedAtMs: NOW, durationMs: 7 }),
      history: [event('enqueued'), event('completed')],
    },
    reasons: ['completed'],
    main: { kind: 'completed', worker: 'w1', tookMs: 7 },
  },
  {
    what: 'a dead letter',
    given: { job: dead('01B', { error, attempt: 3 }) },
    reasons: ['dead'],
    main: { kind: 'dead', error, attempt: 3, attempts: 3 },
  },
  {
    what: 'cancelled by somebody',
    given: {
      job: view({ id: '01B', state: 'cancelled' }),
      history: [event('enqueued'), event('cancelled', { who: 'ann', reason: 'twice' })],
    },
    reasons: ['cancelled'],
    main: { kind: 'cancelled', who: 'ann', reason: 'twice' },
  },
  {
    what: 'discarded, and nobody knows by whom',
    given: { job: view({ id: '01B', state: 'discarded' }), history: [] },
    reasons: ['discarded'],
    main: { kind: 'discarded', who: null, reason: null },
  },
  {
    what: 'superseded by one that is there',
    given: { job: view({ id: '01B', state: 'superseded' }), successor: view({ id: '01C' }) },
    reasons: ['superseded'],
    main: { kind: 'superseded', by: { id: '01C', type: 'mail', state: 'queued' } },
  },
  {
    what: 'superseded by one that is gone',
    given: { job: view({ id: '01B', state: 'superseded' }), history: [event('superseded', { by: '01C' })] },
    reasons: ['superseded'],
    main: { kind: 'superseded', by: { id: '01C', type: '', state: 'removed' } },
  },
  { what: 'in no state to stay in', given: { job: view({ state: 'failed' }) }, reasons: ['unsettled'] },
]

const HELD: readonly Row[] = [
  {
    what: 'running',
    given: { job: running('01B', { attempt: 2 }) },
    reasons: ['running'],
    main: { kind: 'running', worker: 'w1', attempt: 2, leaseUntilMs: NOW + 30_000 },
  },
  {
    what: 'running without a lease, where there are none',
    given: { job: running('01B', { leaseUntilMs: null }), recovery: { byReaper: false, maxMs: null } },
    reasons: ['running'],
  },
  {
    what: 'a lease that has just run out',
    given: { job: running('01B', { leaseUntilMs: NOW, attempt: 3 }) },
    reasons: ['lease-expired'],
    main: { kind: 'lease-expired', worker: 'w1', takenByMs: NOW + 45_000, isLast: true },
  },
  {
    what: 'a lease that the store forgot with its end',
    given: { job: running('01B', { leaseUntilMs: null, attempt: 1 }) },
    reasons: ['lease-expired'],
    main: { kind: 'lease-expired', atMs: null, takenByMs: null, isLast: false },
  },
  {
    what: 'running while its type is paused',
    given: { job: running('01B'), pause },
    reasons: ['running'],
    notes: ['paused-goes-on'],
  },
  {
    what: 'running on one that is not heard any more',
    given: { job: running('01B'), presence: presence([], [beat()]) },
    reasons: ['running'],
    notes: ['holder-silent'],
  },
  {
    what: 'running on one that stops',
    given: {
      job: running('01B'),
      presence: presence([beat({ status: 'SHUTTING_DOWN', stoppingSinceMs: NOW - 9_000 })]),
    },
    reasons: ['running'],
    notes: ['holder-stopping'],
  },
  {
    what: 'running on one of whom nothing was ever heard',
    given: { job: running('01B', { leaseOwner: 'foreign' }) },
    reasons: ['running'],
    notes: [],
  },
]

testRows([...OVER, ...HELD])
