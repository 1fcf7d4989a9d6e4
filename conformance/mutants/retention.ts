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

function asRuleOfType({ lease, outcome }: Settlement): Settlement {
  if (outcome.kind !== 'complete' && outcome.kind !== 'dead') return { lease, outcome }
  return { lease, outcome: { ...outcome, keepIsOwn: false } }
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
    flaw: 'a job that is told to go takes the dead letters of its type along',
    killer: 'removal options: a job that keeps none of its type goes alone, whether it completes or dies',
    alter: () => ({
      consumer: (right, engine) => ({
        settle: async (settlements) => {
          const lost = await right.settle(settlements)
          for (const { lease, outcome } of settlements) {
            if (outcome.kind !== 'dead' || outcome.keep !== 0) continue
            const letters = (await engine.deadLetters?.list({ type: lease.job.type, limit: 100 })) ?? []
            await engine.deadLetters?.remove(
              letters.map(({ job }) => job.id),
              { who: 'retention', reason: 'more than removeOnFail keeps' },
            )
          }
          return lost
        },
      }),
    }),
  },
  {
    flaw: `a job's own number is taken for a rule of its type`,
    killer: `removal options: a job's own number removes only those that have one of their own, and none that may stay longer`,
    alter: () => ({
      consumer: (right) => ({ settle: (settlements) => right.settle(settlements.map(asRuleOfType)) }),
    }),
  },
  {
    flaw: 'how many of a type stay is ignored when a job completes',
    killer: 'a completion that says how many of its type stay leaves only the newest',
    alter: () => ({ consumer: (right) => ({ settle: (settlements) => right.settle(settlements.map(withoutKeep)) }) }),
  },
]
