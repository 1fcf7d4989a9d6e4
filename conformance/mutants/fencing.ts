import type { Lease, NotApplied, Settlement } from '../../src/engine/outcome.ts'
import { never } from '../stage.ts'
import { type Mutant, Newest } from './mutant.ts'

export const fencingMutants: readonly Mutant[] = [
  {
    flaw: 'settle looks at the job and not at the token',
    killer: 'a late holder cannot complete the job once another holds it',
    alter: () => {
      const newest = new Newest()
      return {
        consumer: (right) => ({
          claim: async (request) => newest.note(await right.claim(request)),
          settle: (settlements) =>
            right.settle(settlements.map(({ lease, outcome }) => ({ lease: newest.of(lease), outcome }))),
        }),
      }
    },
  },
  {
    flaw: 'a lease that ran out still settles as long as nobody has reaped it',
    killer: 'a holder whose lease ran out cannot complete the job, though nobody has reaped it',
    alter: () => ({
      consumer: (right, engine) => ({
        settle: async (settlements) => {
          const lost = await right.settle(settlements)
          const reaper = await engine.consume({ types: 'every', worker: 'flaw:1:1' })
          const expired = await reaper.claim({ max: 1_000, waitMs: 0, signal: never, from: 'expired' })
          const revived = ({ lease }: Settlement): Lease | undefined =>
            expired.find(({ job }) => job.id === lease.job.id)
          for (const settlement of settlements) {
            const lease = revived(settlement)
            if (lease !== undefined) await reaper.settle([{ lease, outcome: settlement.outcome }])
          }
          return lost.filter(({ lease }) => !expired.some(({ job }) => job.id === lease.job.id))
        },
      }),
    }),
  },
  {
    flaw: 'settle swallows its losses',
    killer: 'a holder that has settled cannot complete the job again',
    alter: () => ({
      consumer: (right) => ({
        settle: async (settlements) => {
          await right.settle(settlements)
          return []
        },
      }),
    }),
  },
  {
    flaw: 'settle stops at the first lost lease of a batch',
    killer: 'a batch of mixed outcomes is applied one by one, and only the lost ones are refused',
    alter: () => ({
      consumer: (right) => ({
        settle: async (settlements) => {
          const lost: NotApplied[] = []
          for (const settlement of settlements) {
            lost.push(...(await right.settle([settlement])))
            if (lost.length > 0) break
          }
          return lost
        },
      }),
    }),
  },
  {
    flaw: 'renew answers that everything is held',
    killer: 'a holder whose lease ran out cannot renew the job, though nobody has reaped it',
    alter: () => ({
      consumer: (right) => ({
        renew: async (leases, leaseMs) => {
          await right.renew(leases, leaseMs)
          return []
        },
      }),
    }),
  },
  {
    flaw: 'renew extends nothing',
    killer: 'a renewed lease outlives its first expiry',
    alter: () => ({ consumer: (right) => ({ renew: (leases) => right.renew(leases, 1) }) }),
  },
  {
    flaw: 'progress is accepted from anyone',
    killer: 'nobody can report progress of a running job with a token that is not its own',
    alter: () => {
      const newest = new Newest()
      return {
        consumer: (right) => ({
          claim: async (request) => newest.note(await right.claim(request)),
          report: (lease, progress) => right.report(newest.of(lease), progress),
        }),
      }
    },
  },
  {
    flaw: 'the reaper is handed the dead holder’s own token',
    killer: 'the reaper receives the job under a fresh token with its attempt unchanged',
    alter: () => {
      const newest = new Newest()
      const real = new Map<string, Lease>()
      const reveal = (lease: Lease): Lease => real.get(lease.token) ?? lease
      return {
        consumer: (right) => ({
          claim: async (request) => {
            const leases = await right.claim(request)
            if (request.from !== 'expired') return newest.note(leases)
            return leases.map((lease) => {
              const { token } = newest.of(lease)
              real.set(token, lease)
              return { ...lease, token }
            })
          },
          settle: (settlements) =>
            right.settle(settlements.map(({ lease, outcome }) => ({ lease: reveal(lease), outcome }))),
        }),
      }
    },
  },
  {
    flaw: 'the reaper takes leases that are still live',
    killer: 'the reaper finds nothing before a lease has run out',
    alter: () => {
      const newest = new Newest()
      return {
        consumer: (right) => ({
          claim: async (request) => {
            if (request.from === 'expired') await right.renew(newest.all(), 0)
            return newest.note(await right.claim(request))
          },
        }),
      }
    },
  },
  {
    flaw: 'cancelling does not tell the holder',
    killer: 'the holder of a cancelled job is told, also when another view cancels',
    alter: () => ({ consumer: () => ({ listen: () => () => {} }) }),
  },
  {
    flaw: 'cancelling a running job says so and does nothing',
    killer: 'a cancelled holder can neither renew, report nor settle, and hears why',
    alter: () => ({
      engine: (right) => ({
        controls: {
          cancel: async (id, by) => {
            if ((await right.inspector?.find([id]))?.[0]?.state === 'in_progress') return true
            return (await right.controls?.cancel(id, by)) ?? false
          },
        },
      }),
    }),
  },
]
