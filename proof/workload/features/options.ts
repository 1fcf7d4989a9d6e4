import { ranks } from '../abilities.ts'
import { delays, dies, type Feature, one, removes, returns } from './feature.ts'

/** What is asked for with a job. */
export const optionFeatures = {
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
  'slots-of-tenants': {
    per: 12,
    make: ({ dice, job }) => [
      one(
        ...Array.from({ length: 6 }, () => {
          const tenant = dice.chance(0.2) ? {} : { tenant: { orgId: dice.pick(['few', 'many', 'many']) } }
          return job('tenanted', [dice.chance(0.8) ? returns(dice.between(2, 30)) : dies], tenant)
        }),
      ),
    ],
  },
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
    // Where jobs belong to a partition, an older worker leaves it only when it goes.
    can: ({ abilities }) => abilities.capabilities.keys !== 'partition',
    make: ({ job }) => [one(job('versioned', [returns(2)], { version: 2 }))],
  },
} as const satisfies Readonly<Record<string, Feature>>
