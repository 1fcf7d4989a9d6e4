import { has } from '../abilities.ts'
import { delays, dies, type Feature, one, returns, wait, waits } from './feature.ts'

/** Several jobs that belong together, and several in one call. */
export const callFeatures = {
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
  'after-cancelled': {
    per: 4,
    can: (making) => waits(making) && delays(making) && has(making.abilities, 'controls'),
    make: ({ dice, job }) => {
      const first = job('plain', [returns(1)], { delayMs: 1_000 })
      const second = job('plain', [returns(1)], { after: [first.n], ifDead: dice.pick(['wait', 'run', 'die']) })
      return [one(first, second), { do: 'cancel', job: first.n }]
    },
  },
  flow: {
    per: 10,
    can: ({ abilities }) => abilities.capabilities.dependencies && abilities.capabilities.enqueueAtomic,
    make: ({ abilities, dice, job }) => {
      const other = abilities.capabilities.scope === 'store' ? dice.pick(['plain', 'narrow', 'urgent']) : 'plain'
      const start = job('plain', [returns(5)], dice.chance(0.3) ? { key: `key-${dice.between(0, 7)}` } : {})
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
