import type { Consumer, Engine, Subscription } from '../../src/engine/engine.ts'
import type { Lease, Settlement } from '../../src/engine/outcome.ts'
import type { NewRecord, RecordKind, StoredRecord } from '../../src/engine/records.ts'
import type { Alteration } from '../alter.ts'
import { twisted } from './keeping.ts'
import { Newest } from './mutant.ts'

/** An engine whose flaw shows only when two things meet in time. The simulation must find it; a case need not. */
export interface TimingMutant {
  /** What is wrong with it, as a sentence. */
  readonly flaw: string
  /** Called once per store: whatever the flaw has to remember is shared by all views. */
  alter(nowMs: () => number): Alteration
}

/** Notes what is claimed, also for its end. */
function noting(right: Consumer, newest: Newest): Pick<Consumer, 'claim'> {
  return { claim: async (request) => newest.note(await right.claim(request)) }
}

export const timingMutants: readonly TimingMutant[] = [
  {
    flaw: 'a settle that meets the hand-over of its lease to the reaper is applied',
    alter: () => {
      let handed: readonly Lease[] = []
      const successor = (lease: Lease): Lease => handed.find(({ job }) => job.id === lease.job.id) ?? lease
      return {
        consumer: (right) => ({
          claim: async (request) => {
            const leases = await right.claim(request)
            if (request.from === 'expired' && leases.length > 0) handed = leases
            return leases
          },
          settle: (settlements) => {
            const meeting = settlements.map(({ lease, outcome }) => ({ lease: successor(lease), outcome }))
            handed = []
            return right.settle(meeting)
          },
        }),
      }
    },
  },
  {
    flaw: 'a late renewal under an older token extends the lease of the next holder',
    alter: () => {
      const newest = new Newest()
      return {
        consumer: (right) => ({
          ...noting(right, newest),
          renew: async (leases, leaseMs) => {
            const lost = await right.renew(leases, leaseMs)
            await right.renew(
              lost.map(({ lease }) => newest.of(lease)),
              leaseMs,
            )
            return lost
          },
        }),
      }
    },
  },
  {
    flaw: 'the delay of a retry counts from the claim and not from the settle',
    alter: (nowMs) => {
      const claimed = new Map<string, number>()
      const earlier = ({ lease, outcome }: Settlement): Settlement => {
        if (outcome.kind !== 'retry') return { lease, outcome }
        const ranMs = nowMs() - (claimed.get(lease.token) ?? nowMs())
        return { lease, outcome: { ...outcome, delayMs: Math.max(0, outcome.delayMs - ranMs) } }
      }
      return {
        consumer: (right) => ({
          claim: async (request) => {
            const leases = await right.claim(request)
            for (const { token } of leases) claimed.set(token, nowMs())
            return leases
          },
          settle: (settlements) => right.settle(settlements.map(earlier)),
        }),
      }
    },
  },
  {
    flaw: 'a release gives the start back to the limit of its type',
    alter: () => {
      let asked: Subscription | null = null
      let isReset = false
      return {
        subscription: (subscription) => {
          asked = subscription
          return subscription
        },
        consumer: (right, engine) => {
          const unlimited = withoutLimits(asked)
          return {
            claim: async (request) => {
              if (!isReset || unlimited === null || request.from === 'expired') return right.claim(request)
              isReset = false
              const free = await engine.consume(unlimited)
              const leases = await free.claim({ ...request, max: Math.min(1, request.max), waitMs: 0 })
              await free.close()
              return leases.length > 0 ? leases : right.claim(request)
            },
            settle: (settlements) => {
              if (settlements.some(({ outcome }) => outcome.kind === 'release')) isReset = true
              return right.settle(settlements)
            },
          }
        },
      }
    },
  },
  {
    flaw: 'the reaper takes a lease in its last millisecond',
    alter: (nowMs) => {
      const newest = new Newest()
      const ends = new Map<string, number>()
      return {
        consumer: (right) => ({
          claim: async (request) => {
            const ending = newest.all().filter(({ token }) => (ends.get(token) ?? 0) - nowMs() === 1)
            if (request.from === 'expired') await right.renew(ending, 0)
            const leases = newest.note(await right.claim(request))
            for (const { token, expiresAtMs } of leases) ends.set(token, expiresAtMs ?? 0)
            return leases
          },
          renew: (leases, leaseMs) => {
            for (const { token } of leases) ends.set(token, nowMs() + leaseMs)
            return right.renew(leases, leaseMs)
          },
        }),
      }
    },
  },
  {
    flaw: 'a key is free before the completion is stored, also when that is refused',
    alter: () => {
      const free = new Set<string>()
      return {
        engine: (right) => ({
          enqueue: (jobs, within) =>
            right.enqueue(
              jobs.map((job) => (job.key !== null && free.delete(job.key) ? { ...job, key: null } : job)),
              within,
            ),
        }),
        consumer: (right) => ({
          settle: async (settlements) => {
            const refused = await right.settle(settlements)
            for (const { lease, outcome } of settlements) {
              const isRefused = refused.some((each) => each.lease === lease)
              if (isRefused && outcome.kind === 'complete' && lease.job.key !== null) free.add(lease.job.key)
            }
            return refused
          },
        }),
      }
    },
  },
  {
    flaw: 'a cancel that meets a settle of the job is lost',
    alter: () => {
      let settled: readonly string[] = []
      return {
        engine: (right: Engine) => ({
          controls: {
            cancel: async (id, by) => {
              if (settled.includes(id)) return true
              return (await right.controls?.cancel(id, by)) ?? false
            },
          },
        }),
        consumer: (right) => ({
          claim: (request) => {
            settled = []
            return right.claim(request)
          },
          settle: (settlements) => {
            settled = settlements.map(({ lease }) => lease.job.id)
            return right.settle(settlements)
          },
        }),
      }
    },
  },
  {
    flaw: 'a pause is seen only by those that look for the first time',
    alter: () => ({
      engine: (right) => {
        const { records } = right
        if (records === undefined) return {}
        let first: Promise<readonly StoredRecord[]> | null = null
        const list = (kind: RecordKind): Promise<readonly StoredRecord[]> => {
          if (kind !== 'pause') return records.list(kind)
          first ??= records.list(kind)
          return first
        }
        return { records: { ...records, list } }
      },
    }),
  },
  {
    flaw: 'a tick is enqueued twice when two keepers save it at once',
    alter: () => {
      const replaced = new Map<string, string | null>()
      const note = (record: NewRecord, expected: string | null): void => void replaced.set(record.name, expected)
      return twisted('schedule', (right) => ({
        save: async (kind, record, expected, options) => {
          const receipts = await right.save(kind, record, expected, options)
          if (receipts !== null) note(record, expected)
          if (receipts !== null || !replaced.has(record.name) || replaced.get(record.name) !== expected) return receipts
          // The other one has just saved: the record is its, and the jobs are stored beside its.
          const [current] = (await right.list(kind)).filter(({ name }) => name === record.name)
          const again = options?.jobs?.map((job) => ({ ...job, id: `${job.id}-again` }))
          return right.save(kind, record, current?.revision ?? null, { ...options, ...(again && { jobs: again }) })
        },
      }))
    },
  },
  {
    flaw: 'an enqueue that is repeated after a lost answer is stored again if the first has started meanwhile',
    alter: () => ({
      engine: (right) => ({
        enqueue: async (jobs, within) => {
          const known = (await right.inspector?.find(jobs.map(({ id }) => id))) ?? []
          const isRunning = (id: string): boolean => known.some((view) => view?.id === id && view.state === 'in_progress')
          const again = jobs.map((job) => (isRunning(job.id) ? { ...job, id: `${job.id}-again`, key: null } : job))
          return right.enqueue(again, within)
        },
      }),
    }),
  },
  {
    flaw: 'a job that is cancelled while its retry is stored runs again',
    alter: () => {
      const cancelled = new Map<string, Lease>()
      const newest = new Newest()
      return {
        engine: (right: Engine) => ({
          controls: {
            cancel: async (id, by) => {
              const lease = newest.all().find(({ job }) => job.id === id)
              if (lease !== undefined) cancelled.set(id, lease)
              return (await right.controls?.cancel(id, by)) ?? false
            },
          },
        }),
        consumer: (right, engine) => ({
          ...noting(right, newest),
          settle: async (settlements) => {
            for (const { lease, outcome } of settlements) {
              if (outcome.kind !== 'retry' || cancelled.get(lease.job.id)?.token !== lease.token) continue
              const { id, type, payload, payloadVersion, priority, attempts, key, tenant, options } = lease.job
              const plain = { delayMs: 0, runAtMs: null, latest: null, after: null }
              const again = { type, payload, payloadVersion, priority, attempts, key, tenant, options, ...plain }
              await engine.enqueue([{ ...again, id: `${id}-again` }])
            }
            return right.settle(settlements)
          },
        }),
      }
    },
  },
]

function withoutLimits(subscription: Subscription | null): Subscription | null {
  if (subscription === null || subscription.types === 'every') return null
  const limited = subscription.types.filter(({ limit }) => limit !== undefined)
  if (limited.length === 0) return null
  return { ...subscription, types: limited.map(({ limit: _, ...type }) => type) }
}
