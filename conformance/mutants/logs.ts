import type { JobLogs, KeptLine } from '../../src/engine/job-logs.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

function twisted(twist: (right: JobLogs) => Partial<JobLogs>): Alteration {
  return { engine: ({ logs: right }) => (right === undefined ? {} : { logs: { ...right, ...twist(right) } }) }
}

export const logMutants: readonly Mutant[] = [
  {
    flaw: 'the lines of a removed job stay',
    killer: 'logs: they go with a job that is not kept, one that is swept, purged or erased, and with no other',
    alter: () => {
      const known = new Map<string, readonly KeptLine[]>()
      return twisted(({ read }) => ({
        async read(id) {
          const lines = await read(id)
          if (lines.length > 0) known.set(id, lines)
          return known.get(id) ?? lines
        },
      }))
    },
  },
  {
    flaw: 'lines are kept without a bound',
    killer: 'logs: the newest lines are kept, and numbers tell how many are gone',
    alter: () =>
      twisted(({ append }) => ({
        append: (said) => append(said, { lines: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER }),
      })),
  },
  {
    flaw: 'lines are numbered without those that were skipped',
    killer: 'logs: the newest lines are kept, and numbers tell how many are gone',
    alter: () =>
      twisted(({ append }) => ({
        append: (said, keep) =>
          append(
            said.map((part) => ({ ...part, skipped: 0 })),
            keep,
          ),
      })),
  },
  {
    flaw: 'NUL is taken out of lines',
    killer: 'logs: any text comes back as it was said',
    alter: () =>
      twisted(({ read }) => ({
        read: async (id) => (await read(id)).map(({ seq, line }) => ({ seq, line: line.replaceAll('\\u0000', '') })),
      })),
  },
]
