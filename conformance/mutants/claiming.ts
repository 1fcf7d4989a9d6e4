import type { ClaimRequest, Consumer, Engine } from '../../src/engine/engine.ts'
import type { Lease } from '../../src/engine/outcome.ts'
import { never } from '../stage.ts'
import type { Mutant } from './mutant.ts'

export const claimingMutants: readonly Mutant[] = [
  {
    flaw: 'a claim ignores its consumer’s types',
    killer: 'a consumer receives only the types it subscribed to',
    alter: () => {
      const seen = new Set<string>()
      return {
        engine: (right) => ({
          enqueue: (jobs, within) => {
            for (const { type } of jobs) seen.add(type)
            return right.enqueue(jobs, within)
          },
        }),
        consumer: (_right, engine) => ({
          claim: async (request) => {
            const types = [...seen].map((type) => ({ type, leaseMs: 500 }))
            return (await engine.consume({ types, worker: 'flaw:1:1' })).claim(request)
          },
        }),
      }
    },
  },
  {
    flaw: 'a claim ignores priorities',
    killer: 'an urgent job that arrives later overtakes those that wait',
    alter: () => ({
      engine: (right) => ({
        enqueue: (jobs, within) =>
          right.enqueue(
            jobs.map((job) => ({ ...job, priority: 5 })),
            within,
          ),
      }),
    }),
  },
  {
    flaw: 'a claim ignores ageing',
    killer: 'a job counts as one rank more urgent for each interval that it has waited',
    alter: () => ({ subscription: ({ ageingMs: _, ...subscription }) => subscription }),
  },
  {
    flaw: 'an old job goes before all others, also without ageing',
    killer: 'without ageing priority is strict, however long a job has waited',
    alter: () => ({ subscription: (subscription) => ({ ageingMs: 600_000, ...subscription }) }),
  },
  {
    flaw: 'a claim ignores delays',
    killer: 'a delayed job is not claimable before its time and is then',
    alter: () => ({
      engine: (right) => ({
        enqueue: (jobs, within) =>
          right.enqueue(
            jobs.map((job) => ({ ...job, delayMs: 0, runAtMs: null })),
            within,
          ),
      }),
    }),
  },
  {
    flaw: 'a job is handed to two holders',
    killer: 'a held job is nobody else’s until its lease has run out',
    alter: () => {
      let before: readonly Lease[] = []
      return {
        consumer: (right) => ({
          claim: async (request) => {
            const leases = await right.claim(request)
            if (leases.length > 0 || request.from === 'expired') {
              before = leases
              return leases
            }
            return before
          },
        }),
      }
    },
  },
  {
    flaw: 'a claim hands out more than it was asked for',
    killer: 'a claim returns at most as many as asked for, and nothing when nothing is due',
    alter: () => ({ consumer: (right) => ({ claim: (request) => right.claim({ ...request, max: request.max + 1 }) }) }),
  },
  {
    flaw: 'a claim ignores the bounds of single types',
    killer: 'a bound for a single type is kept while the others fill the claim',
    alter: () => ({ consumer: (right) => ({ claim: ({ perType: _, ...request }) => right.claim(request) }) }),
  },
  {
    flaw: 'rate limits are ignored',
    killer: 'no window holds more claims of a type than its limit, over all views',
    alter: () => ({
      subscription: ({ types, worker }) => ({
        types: types === 'every' ? types : types.map(({ type, leaseMs }) => ({ type, leaseMs })),
        worker,
      }),
    }),
  },
  {
    flaw: 'a consumer that finds more than fifty retries claims nothing',
    killer: 'sixty jobs that wait for their retry outlive their consumer, and all of them run again',
    alter: () => {
      let retries = 0
      return {
        consumer: (right) => {
          const isStuck = retries > 50
          return {
            claim: async (request) => (isStuck ? [] : right.claim(request)),
            settle: (settlements) => {
              retries += settlements.filter(({ outcome }) => outcome.kind === 'retry').length
              return right.settle(settlements)
            },
          }
        },
      }
    },
  },
  {
    flaw: 'a claim ignores its abort signal',
    killer: 'a waiting claim ends at once when aborted',
    alter: () => ({ consumer: (right) => ({ claim: (request) => right.claim({ ...request, signal: never }) }) }),
  },
  {
    flaw: 'closing a consumer leaves its claims waiting',
    killer: 'a waiting claim ends at once when its consumer closes',
    alter: () => ({ consumer: () => ({ close: async () => {} }) }),
  },
  {
    flaw: 'work that comes in does not wake a waiting claim',
    killer: 'a waiting claim receives a job enqueued through another view soon',
    alter: () => ({
      consumer: (right, engine) => ({ claim: (request) => claimAsleep(right, engine, request) }),
    }),
  },
  {
    flaw: 'a claim that follows one that took a job does not hear of work that comes in',
    killer: 'a job that comes right after a claim took all there was is received soon, whatever its type',
    alter: () => ({
      consumer: (right, engine) => {
        let hasTaken = false
        return {
          claim: async (request) => {
            const leases = await (hasTaken ? claimAsleep(right, engine, request) : right.claim(request))
            hasTaken ||= leases.length > 0
            return leases
          },
        }
      },
    }),
  },
]

/** Waits for the whole time, whatever comes in. */
async function claimAsleep(right: Consumer, engine: Engine, request: ClaimRequest): Promise<readonly Lease[]> {
  const leases = await right.claim({ ...request, waitMs: 0 })
  if (leases.length > 0 || request.waitMs === 0) return leases
  const idle = await engine.consume({ types: [{ type: 'nobody', leaseMs: 500 }], worker: 'flaw:1:1' })
  await idle.claim(request)
  return right.claim({ ...request, waitMs: 0 })
}
