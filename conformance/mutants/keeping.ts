import type { RecordKind, Records } from '../../src/engine/records.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

/** Records of one kind that are kept wrong. */
export function twisted(kind: RecordKind, twist: (right: Records) => Partial<Records>): Alteration {
  return {
    engine: ({ records: right }) => {
      if (right === undefined) return {}
      const wrong = { ...right, ...twist(right) }
      const pick = (of: RecordKind): Records => (of === kind ? wrong : right)
      const records: Records = {
        ...right,
        list: (of) => pick(of).list(of),
        save: (of, ...rest) => pick(of).save(of, ...rest),
        put: (of, ...rest) => pick(of).put(of, ...rest),
        remove: (of, names) => pick(of).remove(of, names),
      }
      return { records }
    },
  }
}

const revisionOf = async (records: Records, kind: RecordKind, name: string): Promise<string | null> =>
  (await records.list(kind)).find((record) => record.name === name)?.revision ?? null

export const keepingMutants: readonly Mutant[] = [
  {
    flaw: 'saving a schedule ignores its revision',
    killer: 'a schedule changes only with its current revision; otherwise nothing is enqueued',
    alter: () =>
      twisted('schedule', (right) => ({
        save: async (kind, record, _expected, options) =>
          right.save(kind, record, await revisionOf(right, kind, record.name), options),
      })),
  },
  {
    flaw: 'a tick is enqueued without the record that it was',
    killer: 'a run that was enqueued already is a duplicate, and the schedule still goes on',
    alter: () => ({
      engine: (right) => {
        const { records } = right
        if (records === undefined) return {}
        const save: Records['save'] = (kind, record, expected, options) =>
          options?.jobs?.length ? right.enqueue(options.jobs) : records.save(kind, record, expected, options)
        return { records: { ...records, save } }
      },
    }),
  },
  {
    flaw: 'a schedule goes on and its jobs are forgotten',
    killer: 'jobs saved with a schedule are enqueued in the same step, and wake a worker',
    alter: () =>
      twisted('schedule', (right) => ({ save: (kind, record, expected) => right.save(kind, record, expected) })),
  },
  {
    flaw: 'saving a term ignores the revision',
    killer: 'of two candidates one becomes leader, and both learn who',
    alter: () =>
      twisted('leader', (right) => ({
        save: async (kind, record, _expected, options) => {
          for (;;) {
            const expected = await revisionOf(right, kind, record.name)
            const receipts = await right.save(kind, record, expected, options)
            if (receipts !== null) return receipts
          }
        },
      })),
  },
  {
    flaw: 'a term never runs out',
    killer: 'leadership is free when its term has expired, and the term number grows with each new leader',
    alter: () =>
      twisted('leader', (right) => ({
        list: async (kind) => (await right.list(kind)).map((record) => ({ ...record, leftMs: 1 })),
      })),
  },
]
