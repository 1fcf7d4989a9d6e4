import type { Engine } from '../../src/engine/engine.ts'
import type { Predecessors } from '../../src/job/job.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

/** An engine that is told otherwise whom a job comes after. */
const misled = (twist: (after: Predecessors) => Predecessors | null): Alteration => ({
  engine: (right: Engine) => ({
    enqueue: (jobs, within) =>
      right.enqueue(
        jobs.map((job) => ({ ...job, after: job.after === null ? null : twist(job.after) })),
        within,
      ),
  }),
})

export const dependencyMutants: readonly Mutant[] = [
  {
    flaw: 'a job that comes after another is handed out at once',
    killer: 'a job that comes after another is handed out when that one is completed, and tells whom it came after',
    alter: () => misled(() => null),
  },
  {
    flaw: 'of many that come first one is forgotten',
    killer: 'a job that comes after many waits for the last of them, also when they are settled in one call',
    alter: () => misled(({ ids, ifDead }) => ({ ids: ids.slice(-1), ifDead })),
  },
  {
    flaw: 'those that wait for a replay are handed out as soon as the first dies',
    killer:
      'when the first dies those that run or die with it are handed out, and those that wait go on after its replay',
    alter: () => misled(({ ids, ifDead }) => ({ ids, ifDead: ifDead === 'wait' ? 'run' : ifDead })),
  },
  {
    flaw: 'those that die with the first wait for its replay',
    killer: 'a job after one that is dead already waits, or is handed out, by its own policy',
    alter: () => misled(({ ids, ifDead }) => ({ ids, ifDead: ifDead === 'die' ? 'wait' : ifDead })),
  },
  {
    flaw: 'of a flow that is refused the first half is stored',
    killer: 'a job after one that nobody knows is refused, and nothing of its batch is stored',
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
