import type { Leadership } from '../../src/engine/leadership.ts'
import type { Schedules } from '../../src/engine/schedules.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

function schedules(twist: (right: Schedules) => Partial<Schedules>): Alteration {
  return {
    engine: ({ schedules: right }) => (right === undefined ? {} : { schedules: { ...right, ...twist(right) } }),
  }
}

function leadership(twist: (right: Leadership) => Partial<Leadership>): Alteration {
  return {
    engine: ({ leadership: right }) => (right === undefined ? {} : { leadership: { ...right, ...twist(right) } }),
  }
}

export const keepingMutants: readonly Mutant[] = [
  {
    flaw: 'saving a schedule ignores its revision',
    killer: 'a schedule is changed only by whoever knows its revision, and else nothing is enqueued',
    alter: () =>
      schedules((right) => ({
        save: async (record, _expected, jobs) =>
          right.save(record, (await right.find(record.name))?.revision ?? null, jobs),
      })),
  },
  {
    flaw: 'a tick is enqueued without the record that it was',
    killer: 'a run that was enqueued already is a duplicate, and the schedule still goes on',
    alter: () => ({
      engine: (right) => {
        const { schedules: port } = right
        if (port === undefined) return {}
        const save: Schedules['save'] = (record, expected, jobs) =>
          jobs.length === 0 ? port.save(record, expected, jobs) : right.enqueue(jobs)
        return { schedules: { ...port, save } }
      },
    }),
  },
  {
    flaw: 'a schedule goes on and its jobs are forgotten',
    killer: 'jobs saved with a schedule are enqueued in the same step, and wake a worker',
    alter: () => schedules((right) => ({ save: (record, expected) => right.save(record, expected, []) })),
  },
  {
    flaw: 'everybody who campaigns is told that the office is theirs',
    killer: 'of two that campaign one holds the office, and both are told who',
    alter: () =>
      leadership((right) => ({
        campaign: async (office, holder, leaseMs) => ({ ...(await right.campaign(office, holder, leaseMs)), holder }),
      })),
  },
  {
    flaw: 'anybody can resign for the holder',
    killer: 'a holder that resigns frees the office at once, and nobody else can',
    alter: () =>
      leadership((right) => ({
        resign: async (office) => right.resign(office, (await right.leader(office))?.holder ?? ''),
      })),
  },
]
