import type { Consumer } from '../../src/engine/engine.ts'
import type { Lease, Outcome } from '../../src/engine/outcome.ts'
import type { ErrorRecord } from '../../src/job/job.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

const blank: ErrorRecord = { name: 'Error', code: null, message: '', stack: null }

/** An engine that carries out another outcome than it was given. */
const twisted = (twist: (outcome: Outcome) => Outcome): Alteration => ({
  consumer: (right) => ({
    settle: (settlements) =>
      right.settle(settlements.map(({ lease, outcome }) => ({ lease, outcome: twist(outcome) }))),
  }),
})

/** An engine that tells something else about the leases it hands out. */
const misread = (read: (lease: Lease, from: 'ready' | 'expired') => Lease): Alteration => ({
  consumer: (right: Consumer) => ({
    claim: async (request) => (await right.claim(request)).map((lease) => read(lease, request.from ?? 'ready')),
  }),
})

export const outcomeMutants: readonly Mutant[] = [
  {
    flaw: 'a release uses an attempt',
    killer: 'a release gives the attempt back, as often as it happens',
    alter: () =>
      twisted((outcome) =>
        outcome.kind === 'release' ? { kind: 'retry', delayMs: outcome.delayMs, error: blank } : outcome,
      ),
  },
  {
    flaw: 'a release loses its delay',
    killer: 'a release with a delay defers the job by it',
    alter: () => twisted((outcome) => (outcome.kind === 'release' ? { ...outcome, delayMs: 0 } : outcome)),
  },
  {
    flaw: 'a retry loses its delay',
    killer: 'a retry waits its delay and is then claimable',
    alter: () => twisted((outcome) => (outcome.kind === 'retry' ? { ...outcome, delayMs: 0 } : outcome)),
  },
  {
    flaw: 'a retry loses its error',
    killer: 'the error of a failed attempt is shown while the job waits',
    alter: () => twisted((outcome) => (outcome.kind === 'retry' ? { ...outcome, error: blank } : outcome)),
  },
  {
    flaw: 'a retry does not use an attempt',
    killer: 'every start counts one attempt',
    alter: () =>
      twisted((outcome) =>
        outcome.kind === 'retry' ? { kind: 'release', delayMs: outcome.delayMs, reason: 'flaw' } : outcome,
      ),
  },
  {
    flaw: 'a dead letter loses its error',
    killer: 'a dead letter is listed with its job and its whole error',
    alter: () => twisted((outcome) => (outcome.kind === 'dead' ? { ...outcome, error: blank } : outcome)),
  },
  {
    flaw: 'text that the store cannot keep fails the whole batch',
    killer:
      'an outcome whose text the store cannot keep is stored without it or refused alone, and nothing of its batch is lost',
    alter: () => ({
      consumer: (right) => ({
        settle: async (settlements) => {
          for (const { outcome } of settlements) {
            if (JSON.stringify(outcome).includes('\\u0000')) throw new Error('invalid byte sequence')
          }
          return right.settle(settlements)
        },
      }),
    }),
  },
  {
    flaw: 'a dead job is completed',
    killer: 'a dead job is counted and never handed out again',
    alter: () =>
      twisted((outcome) => (outcome.kind === 'dead' ? { kind: 'complete', result: 'null', durationMs: 0 } : outcome)),
  },
  {
    flaw: 'a completed job loses its result',
    killer: 'a completed job shows its result and its times',
    alter: () => twisted((outcome) => (outcome.kind === 'complete' ? { ...outcome, result: 'null' } : outcome)),
  },
  {
    flaw: 'reaping counts the lost start a second time',
    killer: 'the reaper receives the job under a fresh token with its attempt unchanged',
    alter: () => misread((lease, from) => (from === 'expired' ? { ...lease, attempt: lease.attempt + 1 } : lease)),
  },
  {
    flaw: 'a dead letter that is put back loses its options',
    killer: 'a dead letter put back runs again with all its options and no attempts used',
    alter: () => {
      const back = new Set<string>()
      return {
        ...misread((lease) => (back.has(lease.job.id) ? { ...lease, job: { ...lease.job, options: null } } : lease)),
        engine: (right) => ({
          ...(right.deadLetters && {
            deadLetters: {
              ...right.deadLetters,
              requeue: async (ids, by, edit) => {
                for (const id of ids) back.add(id)
                return (await right.deadLetters?.requeue(ids, by, edit)) ?? []
              },
            },
          }),
        }),
      }
    },
  },
  {
    flaw: 'a dead letter that is put back keeps its used attempts',
    killer: 'a dead letter put back runs again with all its options and no attempts used',
    alter: () => {
      const used = new Map<string, number>()
      return {
        ...misread((lease) => ({ ...lease, attempt: lease.attempt + (used.get(lease.job.id) ?? 0) })),
        engine: (right) => ({
          ...(right.deadLetters && {
            deadLetters: {
              ...right.deadLetters,
              requeue: async (ids, by, edit) => {
                for (const job of (await right.inspector?.find(ids)) ?? []) used.set(job?.id ?? '', job?.attempt ?? 0)
                return (await right.deadLetters?.requeue(ids, by, edit)) ?? []
              },
            },
          }),
        }),
      }
    },
  },
]
