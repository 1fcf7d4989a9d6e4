import type { Settlement } from '../../src/engine/outcome.ts'
import type { Retention } from '../../src/engine/retention.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

function twisted(twist: (right: Retention) => Partial<Retention>): Alteration {
  return { engine: ({ retention: right }) => (right === undefined ? {} : { retention: { ...right, ...twist(right) } }) }
}

function withoutKeep({ lease, outcome }: Settlement): Settlement {
  if (outcome.kind !== 'complete' && outcome.kind !== 'dead') return { lease, outcome }
  const { keep: _, ...rest } = outcome
  return { lease, outcome: rest }
}

export const retentionMutants: readonly Mutant[] = [
  {
    flaw: 'a dead letter is removed by a rule without an entry in the audit',
    killer: 'a dead letter removed by a rule leaves an entry in the audit, and so does a discarded one',
    alter: () => ({
      engine: ({ deadLetters: right }) =>
        right === undefined
          ? {}
          : {
              deadLetters: {
                ...right,
                audit: async (filter) => (await right.audit(filter)).filter(({ who }) => who !== 'retention'),
              },
            },
    }),
  },
  {
    flaw: 'a sweep removes what is too young',
    killer: 'a sweep removes what was completed before the rule says, with its history, and nothing else',
    alter: () =>
      twisted(({ sweep }) => ({
        sweep: (rules, step) =>
          sweep(
            rules.map((rule) => ({ ...rule, beforeMs: rule.beforeMs === null ? null : rule.beforeMs + 172_800_000 })),
            step,
          ),
      })),
  },
  {
    flaw: 'the rule of a type is forgotten',
    killer: 'a rule that names a type goes before one that does not, and may keep all of it',
    alter: () =>
      twisted(({ sweep }) => ({
        sweep: (rules, step) =>
          sweep(
            rules.filter(({ type }) => type === undefined),
            step,
          ),
      })),
  },
  {
    flaw: 'a dry run removes',
    killer: 'a sweep looks at no more jobs than it was told, and goes on where it ended',
    alter: () => twisted(({ sweep }) => ({ sweep: (rules, { dryRun: _, ...step }) => sweep(rules, step) })),
  },
  {
    flaw: 'a sweep ends after its first step',
    killer: 'a sweep looks at no more jobs than it was told, and goes on where it ended',
    alter: () =>
      twisted(({ sweep }) => ({ sweep: async (rules, step) => ({ ...(await sweep(rules, step)), next: null }) })),
  },
  {
    flaw: 'how many of a type stay is ignored when a job completes',
    killer: 'a completion that says how many of its type stay leaves only the newest',
    alter: () => ({ consumer: (right) => ({ settle: (settlements) => right.settle(settlements.map(withoutKeep)) }) }),
  },
]
