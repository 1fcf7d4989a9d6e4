import { has, ranks } from '../abilities.ts'
import type { Mistake, Unsupported } from '../operation.ts'
import { desk, dies, type Feature, type Making, one, records, removes, returns, throws, wait } from './feature.ts'

const LACKS: readonly { readonly ask: Unsupported; isLacking(making: Making): boolean }[] = [
  { ask: 'delay', isLacking: ({ abilities }) => abilities.capabilities.enqueueDelayMaxMs === 0 },
  {
    ask: 'long-delay',
    isLacking: ({ abilities: { capabilities } }) =>
      capabilities.enqueueDelayMaxMs > 0 && capabilities.enqueueDelayMaxMs < 86_400_000,
  },
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
  { ask: 'slots', isLacking: ({ abilities }) => abilities.capabilities.slots === 'refused' },
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
export const actFeatures = {
  pause: {
    per: 5,
    can: records,
    make: ({ dice, job }) => {
      const type = dice.pick(['narrow', 'tenanted', 'limited', 'urgent', 'plain'])
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
    per: 1,
    isEarly: true,
    can: records,
    make: ({ dice }) =>
      (['skip', 'one', 'all'] as const).map((missed) => ({
        do: 'schedule',
        name: missed,
        everySeconds: dice.between(1, 3),
        missed,
      })),
  },
  'change-schedule': {
    per: 5,
    can: records,
    make: ({ dice }) => {
      const name = dice.pick(['skip', 'one', 'all'])
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
