import type { Backoff } from '../../../src/job/backoff.ts'
import { dies, type Feature, type Making, one, returns, throws } from './feature.ts'

const BACKOFFS: readonly [Backoff, ...Backoff[]] = [
  { kind: 'fixed', delay: 30 },
  { kind: 'fixed', delay: 0 },
  { kind: 'fixed', delay: 30, jitter: 'equal' },
  { kind: 'list', delays: [10, 50, 150] },
  { kind: 'list', delays: [40], jitter: 'full' },
  { kind: 'exponential', base: 10, max: 100 },
  { kind: 'exponential', base: 10, max: 80, firstExponent: 1, jitter: { add: 20 } },
]

/** Retries and what handlers do. */
export const behaviourFeatures = {
  'retry-then-complete': {
    per: 30,
    make: ({ dice, job }) => {
      const fails = Array.from({ length: dice.between(1, 3) }, () => throws)
      return [one(job('plain', [...fails, returns(2)], { attempts: 4, backoff: dice.pick(BACKOFFS) }))]
    },
  },
  'retry-until-dead': {
    per: 12,
    make: ({ dice, job }) => {
      const type = dice.pick(['plain', 'narrow', 'tenanted', 'urgent', 'bounded', 'fleeting', 'critical', 'aged'])
      return [one(job(type, [throws], { attempts: dice.between(1, 4), backoff: dice.pick(BACKOFFS) }))]
    },
  },
  'many-retries': {
    per: 2,
    make: ({ job }) => {
      const fails = Array.from({ length: 24 }, () => throws)
      return [one(job('plain', [...fails, returns(0)], { attempts: 30, backoff: { kind: 'fixed', delay: 5 } }))]
    },
  },
  /** More at once than a partition of a log keeps in retry; at times for so long that its owner is replaced meanwhile. */
  'retry-burst': {
    per: 0.5,
    make: ({ dice, job }) => {
      const plan = [throws, throws, returns(1)]
      const more = { attempts: 5, backoff: { kind: 'fixed', delay: dice.pick([400, 3_000]) } } as const
      return [{ do: 'enqueue', how: 'many', jobs: Array.from({ length: 180 }, () => job('plain', plan, more)) }]
    },
  },
  'definition-backoff': {
    per: 8,
    make: ({ dice, job }) => [one(job(dice.pick(['narrow', 'urgent', 'critical', 'aged']), [throws, returns(1)]))],
  },
  'non-retryable': {
    per: 10,
    make: ({ dice, job }) => [one(job(dice.pick(['plain', 'bounded', 'critical']), [dies]))],
  },
  'unstorable-error': {
    per: 4,
    make: ({ dice, job }) => {
      const fails = { do: 'throw', afterMs: 1, how: 'unstorable' } as const
      return [one(job('plain', dice.chance(0.5) ? [fails, returns(1)] : [fails], { attempts: 2 }))]
    },
  },
  'retry-after': {
    per: 8,
    make: ({ dice, job }) => [one(job('plain', [{ do: 'retry-after', delayMs: dice.between(0, 200) }, returns(1)]))],
  },
  offline: {
    per: 6,
    make: ({ dice, job }) => [one(job('plain', [{ do: 'offline', delayMs: 120, times: dice.between(1, 2) }]))],
  },
  postpone: {
    per: 8,
    make: ({ dice, job }) => [
      one(
        job('plain', [{ do: 'postpone', delayMs: dice.between(100, 250), times: dice.between(1, 3) }], { attempts: 1 }),
      ),
    ],
  },
  'timeout-heeded': {
    per: 5,
    make: ({ job }) => [one(job('plain', [{ do: 'hang', forMs: 5_000, heeds: true }, returns(1)], { timeoutMs: 120 }))],
  },
  'timeout-ignored': {
    per: 5,
    make: ({ dice, job }) => [
      one(
        job('plain', [{ do: 'hang', forMs: 500, heeds: false }, ...(dice.chance(0.5) ? [returns(1)] : [])], {
          timeoutMs: 120,
          attempts: 2,
        }),
      ),
    ],
  },
  'longer-than-lease': {
    per: 3,
    make: ({ dice, job }) => [
      one(job(dice.pick(['plain', 'narrow', 'tenanted']), [returns(dice.between(1_600, 2_600))])),
    ],
  },
  progress: {
    per: 8,
    make: ({ dice, job }) => [one(job('plain', [{ do: 'report', steps: dice.between(2, 5), everyMs: 15 }]))],
  },
  'enqueue-in-handler': {
    per: 14,
    make: ({ dice, job }) => {
      const type = dice.pick(['plain', 'narrow', 'fleeting', 'aged'])
      return [one(job(type, [{ do: 'enqueue', count: dice.between(1, 5), afterMs: dice.between(0, 200) }]))]
    },
  },
  'bad-result': { per: 3, make: ({ job }) => [one(job('plain', [{ do: 'return-nonsense' }]))] },
  'block-event-loop': {
    per: 2,
    can: ({ mayBlock }) => mayBlock,
    make: ({ dice, job }) => [one(job('plain', [{ do: 'block', forMs: dice.between(200, 900) }]))],
  },
  'crash-once': {
    per: 2,
    can: crashes,
    make: ({ job }) => [one(job('plain', [{ do: 'crash' }, returns(1)]))],
  },
  'crash-always': {
    per: 1,
    isEarly: true,
    can: crashes,
    make: ({ job }) => [one(job('plain', [{ do: 'crash' }], { attempts: 2 }))],
  },
} as const satisfies Readonly<Record<string, Feature>>

/** Where a settled watermark comes back, a crash is no counted start, and a job that always crashes would do so for ever. */
function crashes({ mayCrash, abilities }: Making): boolean {
  return mayCrash && abilities.capabilities.settle === 'immediate'
}
