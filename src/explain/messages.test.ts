import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Note, Reason } from './explanation.ts'
import { noteText, reasonText } from './messages.ts'

const NOW = Date.UTC(2026, 0, 1)
const error = { name: 'TypeError', code: null, message: 'no route.', stack: null }
const pause = { type: 'mail', who: 'ann', reason: 'the server moves', sinceMs: NOW - 300_000 }
const job = (id: string) => ({ id, type: 'mail', state: 'in_progress' })

const REASONS: readonly (readonly [Reason, string])[] = [
  [{ kind: 'completed', atMs: null, worker: null, tookMs: null }, 'It was completed.'],
  [
    { kind: 'completed', atMs: NOW - 120_000, worker: 'w1', tookMs: 850 },
    'It was completed at 2025-12-31T23:58:00.000Z (2m ago) by w1, after 850 ms of work.',
  ],
  [
    { kind: 'dead', atMs: null, attempt: 3, attempts: 3, error },
    'It became a dead letter, at attempt 3 of 3, because of TypeError: no route. Replay it to run it again.',
  ],
  [{ kind: 'discarded', atMs: null, who: 'ann', reason: null }, 'It was discarded by ann.'],
  [
    { kind: 'superseded', atMs: null, by: { id: 'x', type: '', state: 'removed' } },
    'It was superseded by a newer version of its latest key: x (removed).',
  ],
  [
    { kind: 'superseded', atMs: NOW - 120_000, by: null, isReplay: true },
    'It became a dead letter at 2025-12-31T23:58:00.000Z (2m ago) and was replayed: the job goes on as a later record.',
  ],
  [
    { kind: 'running', worker: null, sinceMs: null, attempt: 1, attempts: 3, leaseUntilMs: null },
    'It runs on a worker, attempt 1 of 3.',
  ],
  [
    { kind: 'lease-expired', worker: 'w1', atMs: NOW - 1_000, takenByMs: NOW + 44_000, isLast: false },
    'The lease of w1 on it expired at 2025-12-31T23:59:59.000Z (1s ago): the worker died, was killed or stalls. A keeper recovers it by 2026-01-01T00:00:44.000Z (in 44s); then it is retried.',
  ],
  [
    { kind: 'lease-expired', worker: 'w1', atMs: NOW - 90_000, takenByMs: NOW - 45_000, isLast: true },
    "The lease of w1 on it expired at 2025-12-31T23:58:30.000Z (1m ago): the worker died, was killed or stalls. No keeper has recovered it, so none seems to run: start a worker, or run 'millrace reap'; then it becomes a dead letter: that was its last attempt.",
  ],
  [
    { kind: 'waits-for-jobs', jobs: ['a', 'b', 'c', 'd'].map(job), of: 9, notLookedUp: 0, ifDead: 'run' },
    "It waits for 4 of 9 jobs: 'mail' a (in_progress), 'mail' b (in_progress), 'mail' c (in_progress) and 1 more. If one of them dies, it runs anyway.",
  ],
  [
    { kind: 'waits-for-jobs', jobs: [], of: 900, notLookedUp: 700, ifDead: 'die' },
    'It comes after 900 jobs. The first 200 no longer hold it back; it may wait for one of the others. If one of them dies, it dies too.',
  ],
  [
    { kind: 'delayed', untilMs: NOW + 9_000, putOff: { by: 'release', reason: 'offline' } },
    'It is delayed until 2026-01-01T00:00:09.000Z (in 9s): it was released, its handler was offline.',
  ],
  [
    { kind: 'delayed', untilMs: NOW + 9_000, putOff: { by: 'release', reason: 'moon' } },
    "It is delayed until 2026-01-01T00:00:09.000Z (in 9s): it was released, for 'moon'.",
  ],
  // X100
  [
    {
      kind: 'delayed',
      untilMs: NOW + 9_000,
      putOff: { by: 'release', reason: 'postponed: waiting for 2 confirmations.' },
    },
    'It is delayed until 2026-01-01T00:00:09.000Z (in 9s), postponed by its handler: waiting for 2 confirmations.',
  ],
  [
    { kind: 'paused', pause },
    'Its type \'mail\' was paused by ann at 2025-12-31T23:55:00.000Z (5m ago), "the server moves". It starts when the type is resumed.',
  ],
  [
    { kind: 'slots-taken', max: 2, tenant: null, jobs: [job('a'), job('b')] },
    "All 2 slots of its type over all workers are taken, by 'mail' a (in_progress), 'mail' b (in_progress). It can start when one of them has ended.",
  ],
  [
    { kind: 'limit-reached', max: 1, perMs: 60_000, untilMs: NOW + 1_000, jobs: [job('a')] },
    "The limit of its type, 1 start in 1m, is reached, by 'mail' a (in_progress). The next start is possible at 2026-01-01T00:00:01.000Z (in 1s).",
  ],
  [
    { kind: 'no-worker', type: 'mail', stopping: ['w2'], missing: [{ worker: 'w3', seenAtMs: NOW - 90_000 }] },
    "No worker runs 'mail'. Stopping: w2. Missing: w3, last seen at 2025-12-31T23:58:30.000Z (1m ago). Start one with its handler.",
  ],
  [
    { kind: 'slots-busy', workers: ['w1', 'w2'], jobs: [] },
    'All slots of 2 workers of its type were taken at their last heartbeat (w1, w2).',
  ],
  [{ kind: 'others-first', count: 1, isLeast: false }, '1 job of its type comes first: more urgent, or due earlier.'],
  [
    { kind: 'others-first', count: 100, isLeast: true },
    'At least 100 jobs of its type come first: more urgent, or due earlier.',
  ],
]

const NOTES: readonly (readonly [Note, string])[] = [
  [
    { kind: 'will-die', error: 'it comes after x, which was removed' },
    'When its turn comes it will die: it comes after x, which was removed.',
  ],
  [
    { kind: 'paused-goes-on', pause },
    'Its type was paused by ann at 2025-12-31T23:55:00.000Z (5m ago); running jobs go on.',
  ],
  [
    { kind: 'holder-silent', worker: 'w1', seenAtMs: NOW - 90_000 },
    'w1 has stopped without signing off; last seen at 2025-12-31T23:58:30.000Z (1m ago).',
  ],
  [
    { kind: 'holder-stopping', worker: 'w1', sinceMs: NOW - 2_000 },
    'w1 has been stopping since 2025-12-31T23:59:58.000Z (2s ago).',
  ],
  [
    { kind: 'aged', waitedMs: 2_400_000, priority: 10, rank: 6 },
    'It has been due for 40m, so its priority 10 counts as 6: its workers raise jobs that wait.',
  ],
  [{ kind: 'quiet-workers', workers: ['w1'], forMs: 600_000 }, 'w1 finished no job for 10m and may be stuck.'],
]

for (const [reason, text] of REASONS) {
  test(`${reason.kind}: ${text}`, () => assert.equal(reasonText(reason, NOW), text))
}

for (const [note, text] of NOTES) test(`${note.kind}: ${text}`, () => assert.equal(noteText(note, NOW), text))
