import type { DeadLetters } from '../../src/engine/dead-letters.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

/** An engine whose dead letters behave otherwise. */
function twisted(twist: (right: DeadLetters) => Partial<DeadLetters>): Alteration {
  return {
    engine: ({ deadLetters: right }) => (right === undefined ? {} : { deadLetters: { ...right, ...twist(right) } }),
  }
}

export const deskMutants: readonly Mutant[] = [
  {
    flaw: 'discarding says yes to what is no dead letter',
    killer: 'what was refused at the desk leaves no audit entry',
    alter: () => twisted((right) => ({ discard: async (ids, by) => (await right.discard(ids, by)).map(() => true) })),
  },
  {
    flaw: 'removing forgets the audit of the removed',
    killer: 'every act is audited with who, when, why, before and after, also when its job is gone',
    alter: () => {
      const gone = new Set<string>()
      return twisted((right) => ({
        remove: (ids, by) => {
          for (const id of ids) gone.add(id)
          return right.remove(ids, by)
        },
        audit: async (filter) => (await right.audit(filter)).filter(({ jobId }) => !gone.has(jobId)),
      }))
    },
  },
  {
    flaw: 'a replay keeps the stored payload although an edited one was given',
    killer: 'a replay counts, and takes an edited payload in place of the stored one',
    alter: () => twisted((right) => ({ requeue: (ids, by) => right.requeue(ids, by) })),
  },
  {
    flaw: 'a page of dead letters starts again at the newest',
    killer: 'dead letters are listed page by page, and by when they died',
    alter: () => {
      let pages = 0
      return twisted((right) => ({
        list: (wanted) => {
          if ('ids' in wanted) return right.list(wanted)
          const { after, ...filter } = wanted
          pages += 1
          // A suite that waits for an empty page must not wait for ever.
          return pages > 20
            ? Promise.resolve([])
            : right.list(after === undefined || pages % 2 === 0 ? filter : { ...filter, after })
        },
      }))
    },
  },
  {
    flaw: 'a list of dead letters does not heed the time before which they died',
    killer: 'the desk acts on what it has counted: letters that die later are left alone',
    alter: () =>
      twisted((right) => ({
        list: (wanted) => {
          if ('ids' in wanted) return right.list(wanted)
          const { beforeMs: _, ...filter } = wanted
          return right.list(filter)
        },
      })),
  },
]
