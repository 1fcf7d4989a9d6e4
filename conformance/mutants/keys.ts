import type { NewJob } from '../../src/job/job.ts'
import { type Mutant, Newest } from './mutant.ts'

const latestKey = ({ type, latest }: NewJob): string | null => (latest === null ? null : `${type}/${latest.key}`)

export const keyMutants: readonly Mutant[] = [
  {
    flaw: 'a key is not unique',
    killer: 'a second job of a live key is a duplicate with the first one’s id',
    alter: () => ({
      engine: (right) => ({
        enqueue: (jobs, within) =>
          right.enqueue(
            jobs.map((job) => ({ ...job, key: null })),
            within,
          ),
      }),
    }),
  },
  {
    flaw: 'a key is never free again',
    killer: 'a key can be used again once its job is completed',
    alter: () => {
      const holders = new Map<string, string>()
      return {
        engine: (right) => ({
          enqueue: async (jobs, within) => {
            const receipts = []
            for (const job of jobs) {
              const holder = job.key === null ? undefined : holders.get(job.key)
              if (holder !== undefined) receipts.push({ id: holder, status: 'duplicate' } as const)
              else receipts.push(...(await right.enqueue([job], within)))
              if (job.key !== null && holder === undefined) holders.set(job.key, job.id)
            }
            return receipts
          },
        }),
      }
    },
  },
  {
    flaw: 'a duplicate’s receipt has the id of the job that was not stored',
    killer: 'a second job of a live key is a duplicate with the first one’s id',
    alter: () => ({
      engine: (right) => ({
        enqueue: async (jobs, within) => {
          const receipts = await right.enqueue(jobs, within)
          return receipts.map((receipt, index) => ({ ...receipt, id: jobs[index]?.id ?? receipt.id }))
        },
      }),
    }),
  },
  {
    flaw: 'a newer version does not supersede the waiting one',
    killer: 'a newer version replaces the waiting one',
    alter: () => ({
      engine: (right) => ({
        enqueue: (jobs, within) =>
          right.enqueue(
            jobs.map((job) => ({ ...job, latest: null })),
            within,
          ),
      }),
    }),
  },
  {
    flaw: 'two versions of a latest key run at once',
    killer: 'a newer version waits while an older one is in flight',
    alter: () => {
      const flying = new Newest()
      const isFlying = (job: NewJob): boolean =>
        flying.all().some((lease) => `${lease.job.type}/${lease.job.latestKey}` === latestKey(job))
      return {
        engine: (right) => ({
          enqueue: (jobs, within) =>
            right.enqueue(
              jobs.map((job) => (isFlying(job) ? { ...job, latest: null } : job)),
              within,
            ),
        }),
        consumer: (right) => ({
          claim: async (request) => flying.note(await right.claim(request)),
          settle: async (settlements) => {
            for (const { lease } of settlements) flying.forget(lease)
            return right.settle(settlements)
          },
        }),
      }
    },
  },
  {
    flaw: 'an older sequence number is accepted',
    killer: 'a sequence number that is not higher than the highest seen is stale',
    alter: () => ({
      engine: (right) => ({
        enqueue: (jobs, within) => {
          const forget = (job: NewJob): NewJob =>
            job.latest === null ? job : { ...job, latest: { key: job.latest.key, seq: null } }
          return right.enqueue(jobs.map(forget), within)
        },
      }),
    }),
  },
  {
    flaw: 'a newer version goes to the end of the queue',
    killer: 'a newer version keeps the place of the one it replaces',
    alter: () => {
      const waiting = new Map<string, string>()
      return {
        engine: (right) => ({
          enqueue: async (jobs, within) => {
            for (const job of jobs) {
              const key = latestKey(job)
              const older = key === null ? undefined : waiting.get(key)
              if (older !== undefined) await right.controls?.cancel(older, { who: 'flaw', reason: 'flaw' })
              if (key !== null) waiting.set(key, job.id)
            }
            return right.enqueue(jobs, within)
          },
        }),
      }
    },
  },
  {
    flaw: 'the same id enqueued again is a new job',
    killer: 'enqueuing the same id again stores nothing and answers duplicate',
    alter: () => {
      let copies = 0
      return {
        engine: (right) => ({
          enqueue: async (jobs, within) => {
            const receipts = []
            for (const job of jobs) {
              const [receipt] = await right.enqueue([job], within)
              const isRepeated = receipt?.status === 'duplicate' && receipt.id === job.id && job.key === null
              copies += 1
              if (isRepeated) receipts.push(...(await right.enqueue([{ ...job, id: `${job.id}-${copies}` }], within)))
              else if (receipt !== undefined) receipts.push(receipt)
            }
            return receipts
          },
        }),
      }
    },
  },
  {
    flaw: 'a batch is stored one by one',
    killer: 'a batch that fails half-way stores nothing',
    alter: () => ({
      engine: (right) => ({
        enqueue: async (jobs, within) => {
          const receipts = []
          for (const job of jobs) receipts.push(...(await right.enqueue([job], within)))
          return receipts
        },
      }),
    }),
  },
]
