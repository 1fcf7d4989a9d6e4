/** The features that a workload mixes. Each makes a few operations that belong together and stay in order. */
import type { Backoff } from '../../src/job/backoff.ts'
import { type Abilities, has, ranks } from './abilities.ts'
import type { Dice } from './dice.ts'
import type { Behaviour, Mistake, Operation, PlannedJob, Unsupported } from './operation.ts'

export interface Making {
  readonly abilities: Abilities
  readonly dice: Dice
  /** Whether a handler may end its process, or block it. */
  readonly mayCrash: boolean
  readonly mayBlock: boolean
  readonly hasTransactions: boolean
  /** A planned job with the next number: it returns at once unless `more` says otherwise. */
  job(type: string, behaviours?: readonly Behaviour[], more?: Omit<PlannedJob, 'n' | 'type' | 'behaviours'>): PlannedJob
  /** The next version of a latest key. */
  nextSeq(key: string): number
}

export interface Feature {
  /** How many times in 1,500 jobs. */
  readonly per: number
  /** It takes its time, so it comes in the first part of the program. */
  readonly isEarly?: true
  can?(making: Making): boolean
  make(making: Making): readonly Operation[]
}

const one = (...jobs: readonly PlannedJob[]): Operation => ({ do: 'enqueue', how: 'one-by-one', jobs })
const wait = (ms: number): Operation => ({ do: 'wait', ms })
const returns = (afterMs: number): Behaviour => ({ do: 'return', afterMs })
const throws: Behaviour = { do: 'throw', afterMs: 2, how: 'error' }
const dies: Behaviour = { do: 'throw', afterMs: 1, how: 'non-retryable' }
const delays = ({ abilities }: Making): boolean => abilities.capabilities.enqueueDelayMaxMs > 10_000
const desk = ({ abilities }: Making): boolean => has(abilities, 'deadLetters')
const waits = ({ abilities }: Making): boolean => abilities.capabilities.dependencies
const removes = ({ abilities }: Making): boolean => has(abilities, 'retention')
const records = ({ abilities }: Making): boolean => has(abilities, 'records')

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
const behaviourFeatures = {
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
      const type = dice.pick(['plain', 'narrow', 'urgent', 'bounded', 'fleeting', 'critical', 'aged'])
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
  'definition-backoff': {
    per: 8,
    make: ({ dice, job }) => [one(job(dice.pick(['narrow', 'urgent', 'critical', 'aged']), [throws, returns(1)]))],
  },
  'non-retryable': {
    per: 10,
    make: ({ dice, job }) => [one(job(dice.pick(['plain', 'bounded', 'critical']), [dies]))],
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
    make: ({ dice, job }) => [one(job(dice.pick(['plain', 'narrow']), [returns(dice.between(1_600, 2_600))]))],
  },
  progress: {
    per: 8,
    make: ({ dice, job }) => [one(job('plain', [{ do: 'report', steps: dice.between(2, 5), everyMs: 15 }]))],
  },
  'enqueue-in-handler': {
    per: 14,
    make: ({ dice, job }) => {
      const type = dice.pick(['plain', 'narrow', 'fleeting', 'versioned'])
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

/** What is asked for with a job. */
const optionFeatures = {
  delay: {
    per: 20,
    can: delays,
    make: ({ dice, job }) => [one(job('plain', [], { delayMs: dice.between(1, 1_500) }))],
  },
  at: { per: 10, can: delays, make: ({ dice, job }) => [one(job('plain', [], { atMs: dice.between(-500, 1_500) }))] },
  priority: {
    per: 12,
    can: ({ abilities }) => ranks(abilities),
    make: ({ dice, job }) => [
      one(...Array.from({ length: 6 }, () => job('plain', [returns(3)], { priority: dice.between(1, 10) }))),
    ],
  },
  'limited-rate': {
    per: 8,
    make: ({ job }) => [one(...Array.from({ length: 6 }, () => job('limited', [returns(2)])))],
  },
  'narrow-type': { per: 10, make: ({ job }) => [one(...Array.from({ length: 6 }, () => job('narrow', [returns(8)])))] },
  tenant: {
    per: 10,
    make: ({ dice, job }) => {
      const orgId = `org-${dice.between(1, 5)}`
      return [one(job('plain', [], { tenant: dice.chance(0.5) ? { orgId } : { orgId, workspaceId: 'eins' } }))]
    },
  },
  'large-payload': { per: 3, make: ({ dice, job }) => [one(job('plain', [], { extra: dice.between(1_000, 30_000) }))] },
  key: {
    per: 30,
    can: ({ abilities }) => abilities.capabilities.keys !== 'refused',
    make: ({ dice, job }) => [
      one(job('plain', [returns(dice.between(1, 60))], { key: `key-${dice.between(0, 7)}`, attempts: 2 })),
    ],
  },
  latest: {
    per: 20,
    can: ({ abilities }) => abilities.capabilities.latest,
    make: ({ dice, job }) => {
      const key = `latest-${dice.between(0, 3)}`
      return [
        one(...Array.from({ length: 2 }, () => job('plain', [returns(dice.between(1, 60))], { latest: { key } }))),
      ]
    },
  },
  'latest-seq': {
    per: 15,
    can: ({ abilities }) => abilities.capabilities.latest,
    make: ({ dice, job, nextSeq }) => {
      const key = `seq-${dice.between(0, 3)}`
      const versions = Array.from({ length: 3 }, () => nextSeq(key))
      return [one(...dice.shuffled(versions).map((seq) => job('plain', [returns(20)], { latest: { key, seq } })))]
    },
  },
  'removed-on-complete': {
    per: 10,
    can: removes,
    make: ({ dice, job }) => [
      one(job('plain', [returns(1)], { removeOnComplete: dice.pick([true, false, 0, 1, 4]) })),
      one(job(dice.pick(['bounded', 'fleeting']), [], dice.chance(0.3) ? { removeOnComplete: false } : {})),
    ],
  },
  'removed-on-fail': {
    per: 10,
    can: removes,
    make: ({ dice, job }) => [
      one(job('plain', [dies], { removeOnFail: dice.pick([true, false, 1, 3]) })),
      one(job(dice.pick(['bounded', 'fleeting']), [dies], dice.chance(0.3) ? { removeOnFail: false } : {})),
    ],
  },
  'older-version': { per: 6, make: ({ job }) => [one(job('versioned', [returns(2)], { version: 1 }))] },
  'newer-version': {
    per: 3,
    isEarly: true,
    make: ({ job }) => [one(job('versioned', [returns(2)], { version: 2 }))],
  },
} as const satisfies Readonly<Record<string, Feature>>

/** Several jobs that belong together, and several in one call. */
const callFeatures = {
  'many-at-once': {
    per: 10,
    make: ({ dice, job }) => {
      const type = dice.pick(['plain', 'plain', 'urgent', 'aged'])
      const jobs = Array.from({ length: dice.between(10, 40) }, () => job(type, [returns(dice.between(0, 4))]))
      return [{ do: 'enqueue', how: 'many', jobs }]
    },
  },
  'repeated-enqueue': {
    per: 6,
    can: ({ abilities }) => abilities.capabilities.idempotentEnqueue,
    make: ({ job }) => [{ do: 'enqueue', how: 'repeat', jobs: [job('plain', [returns(5)])] }],
  },
  commit: {
    per: 8,
    can: ({ hasTransactions }) => hasTransactions,
    make: ({ dice, job }) => {
      const jobs = Array.from({ length: dice.between(1, 3) }, () => job('plain', [returns(1)]))
      return [{ do: 'transaction', end: 'commit', jobs }]
    },
  },
  'roll-back': {
    per: 6,
    can: ({ hasTransactions }) => hasTransactions,
    make: ({ dice, job }) => {
      const jobs = Array.from({ length: dice.between(1, 3) }, () => job('plain', [returns(1)]))
      return [{ do: 'transaction', end: 'roll-back', jobs }]
    },
  },
  after: {
    per: 16,
    can: waits,
    make: ({ dice, job }) => {
      const first = job('plain', [dice.chance(0.5) ? dies : returns(20)], { attempts: 1 })
      const ifDead = dice.pick(['wait', 'run', 'die'] as const)
      const second = job('plain', [returns(1)], { after: [first.n], ifDead })
      return [
        one(first),
        wait(dice.between(0, 30)),
        one(second, job('plain', [], { after: [second.n, first.n], ifDead })),
      ]
    },
  },
  flow: {
    per: 10,
    can: ({ abilities }) => abilities.capabilities.dependencies && abilities.capabilities.enqueueAtomic,
    make: ({ abilities, dice, job }) => {
      const other = abilities.capabilities.scope === 'store' ? dice.pick(['plain', 'narrow', 'urgent']) : 'plain'
      const start = job('plain', [returns(5)])
      const ifDead = dice.pick(['wait', 'run', 'die'] as const)
      const middle = [0, 1, 2].map(() => job(other, [dice.chance(0.2) ? dies : returns(5)], { after: [start.n] }))
      const last = job('plain', [returns(1)], { after: middle.map(({ n }) => n), ifDead })
      return [{ do: 'enqueue', how: 'flow', jobs: dice.shuffled([start, ...middle, last]) }]
    },
  },
  'cancel-queued': {
    per: 6,
    can: ({ abilities }) => has(abilities, 'controls'),
    make: (making) => {
      const queued = making.job('plain', [returns(1)], delays(making) ? { delayMs: 800 } : {})
      return [one(queued), { do: 'cancel', job: queued.n }]
    },
  },
  'cancel-running': {
    per: 5,
    can: ({ abilities }) => has(abilities, 'controls'),
    make: ({ dice, job }) => {
      const running = job('plain', [{ do: 'hang', forMs: 1_500, heeds: dice.chance(0.7) }], { timeoutMs: 4_000 })
      return [one(running), wait(dice.between(30, 150)), { do: 'cancel', job: running.n }]
    },
  },
  result: {
    per: 8,
    can: ({ abilities }) => has(abilities, 'inspector'),
    make: ({ dice, job }) => {
      const asked = job('plain', [dice.chance(0.2) ? dies : returns(10)])
      return [one(asked), { do: 'result', job: asked.n, waitMs: 600 }]
    },
  },
} as const satisfies Readonly<Record<string, Feature>>

const LACKS: readonly { readonly ask: Unsupported; isLacking(making: Making): boolean }[] = [
  { ask: 'delay', isLacking: ({ abilities }) => abilities.capabilities.enqueueDelayMaxMs === 0 },
  {
    ask: 'long-backoff',
    isLacking: ({ abilities }) => abilities.capabilities.retryDelayMaxMs < 86_400_000,
  },
  { ask: 'priority', isLacking: ({ abilities }) => !ranks(abilities) },
  { ask: 'key', isLacking: ({ abilities }) => abilities.capabilities.keys === 'refused' },
  { ask: 'latest', isLacking: ({ abilities }) => !abilities.capabilities.latest },
  { ask: 'after', isLacking: ({ abilities }) => !abilities.capabilities.dependencies },
  { ask: 'flow', isLacking: ({ abilities }) => !abilities.capabilities.dependencies },
  { ask: 'transaction', isLacking: ({ abilities }) => !abilities.capabilities.transactionalEnqueue },
  { ask: 'removal', isLacking: ({ abilities }) => !has(abilities, 'retention') },
  { ask: 'limit', isLacking: ({ abilities }) => abilities.capabilities.limits === 'refused' },
  { ask: 'schedule', isLacking: ({ abilities }) => !has(abilities, 'records') },
  { ask: 'pause', isLacking: ({ abilities }) => !has(abilities, 'records') },
  { ask: 'cancel', isLacking: ({ abilities }) => !has(abilities, 'controls') },
  { ask: 'result', isLacking: ({ abilities }) => !has(abilities, 'inspector') },
]

const MISTAKES: readonly [Mistake, ...Mistake[]] = [
  'priority',
  'attempts',
  'delay-and-at',
  'key-and-latest',
  'unknown-option',
  'bad-payload',
  'payload-not-json',
]

/** What operators do, and what is refused. */
const actFeatures = {
  pause: {
    per: 5,
    can: records,
    make: ({ dice, job }) => {
      const type = dice.pick(['narrow', 'limited', 'urgent', 'plain'])
      const during = one(job(type, [returns(1)]), job(type, [returns(1)]))
      return [{ do: 'pause', type }, during, wait(dice.between(50, 400)), { do: 'resume', type }]
    },
  },
  replay: {
    per: 10,
    can: desk,
    make: ({ dice, job }) => [
      one(job('plain', [throws], { attempts: 1 })),
      wait(dice.between(20, 120)),
      { do: 'replay', count: dice.between(1, 4), how: dice.pick(['one-by-one', 'at-once']) },
    ],
  },
  edit: {
    per: 6,
    can: desk,
    make: ({ dice, job }) => [
      one(job('plain', [dies])),
      wait(dice.between(20, 120)),
      { do: 'edit', behaviours: [dice.chance(0.8) ? returns(1) : dies] },
    ],
  },
  discard: {
    per: 6,
    can: desk,
    make: ({ dice, job }) => [
      one(job('critical', [dies])),
      wait(dice.between(20, 120)),
      { do: 'discard', count: dice.between(1, 3), how: dice.pick(['one-by-one', 'at-once']) },
    ],
  },
  undo: { per: 5, can: desk, make: ({ dice }) => [{ do: 'undo', count: dice.between(1, 3), how: 'one-by-one' }] },
  purge: {
    per: 4,
    can: desk,
    make: ({ dice, job }) => [
      one(job('plain', [dies])),
      wait(60),
      { do: 'purge', count: dice.between(1, 2), how: dice.pick(['one-by-one', 'at-once']) },
    ],
  },
  schedule: {
    per: 3,
    isEarly: true,
    can: records,
    make: ({ dice }) => {
      const missed = dice.pick(['skip', 'one', 'all'] as const)
      return [{ do: 'schedule', name: `${missed}-${dice.between(0, 1)}`, everySeconds: dice.between(1, 3), missed }]
    },
  },
  'change-schedule': {
    per: 5,
    can: records,
    make: ({ dice }) => {
      const name = `${dice.pick(['skip', 'one', 'all'])}-${dice.between(0, 1)}`
      const act = dice.pick(['unschedule', 'pause-schedule', 'resume-schedule', 'run-schedule'] as const)
      return [{ do: act, name }]
    },
  },
  sweep: {
    per: 3,
    can: removes,
    make: ({ dice }) => [
      { do: 'sweep', what: dice.pick(['completed', 'ended', 'dead']), type: 'aged', ageMs: dice.between(100, 1_500) },
    ],
  },
  unsupported: {
    per: 6,
    can: (making) => LACKS.some(({ isLacking }) => isLacking(making)),
    make: (making) => {
      const [ask] = making.dice.shuffled(LACKS.filter(({ isLacking }) => isLacking(making)).map((lack) => lack.ask))
      return ask === undefined ? [] : [{ do: 'unsupported', ask }]
    },
  },
  mistake: { per: 4, make: ({ dice }) => [{ do: 'mistake', ask: dice.pick(MISTAKES) }] },
} as const satisfies Readonly<Record<string, Feature>>

export const FEATURES: readonly Feature[] = [
  ...Object.values(behaviourFeatures),
  ...Object.values(optionFeatures),
  ...Object.values(callFeatures),
  ...Object.values(actFeatures),
]

/** Short and plain, as most jobs are. */
export function plainOperation({ dice, job }: Making, count: number): Operation {
  const jobs = Array.from({ length: count }, () => job('plain', [returns(dice.chance(0.9) ? 0 : dice.between(1, 15))]))
  return { do: 'enqueue', how: count > 3 && dice.chance(0.7) ? 'many' : 'one-by-one', jobs }
}
