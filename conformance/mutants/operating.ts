import type { DeadLetters } from '../../src/engine/dead-letters.ts'
import { Pauses } from '../../src/engine/pauses.ts'
import type { Alteration } from '../alter.ts'
import { twisted } from './keeping.ts'
import type { Mutant } from './mutant.ts'

function letters(twist: (right: DeadLetters) => Partial<DeadLetters>): Alteration {
  return {
    engine: ({ deadLetters: right }) => (right === undefined ? {} : { deadLetters: { ...right, ...twist(right) } }),
  }
}

export const operatingMutants: readonly Mutant[] = [
  {
    flaw: 'a beat holds for ever',
    killer: 'a beat takes the place of the one before, and holds for as long as it says',
    alter: () => twisted('worker', (right) => ({ put: (kind, records) => right.put(kind, records, 1e12) })),
  },
  {
    flaw: 'what a worker runs is not kept',
    killer: 'what a worker says of its types is seen by every view, all of it',
    alter: () =>
      twisted('worker', (right) => ({
        put: (kind, records, ttlMs) => {
          const without = (body: string): string => JSON.stringify({ ...JSON.parse(body), work: undefined })
          return right.put(
            kind,
            records.map(({ name, body }) => ({ name, body: without(body) })),
            ttlMs,
          )
        },
      })),
  },
  {
    flaw: 'only those that live were ever seen',
    killer: 'who went without a goodbye can be missed for a day, and is then forgotten',
    alter: () =>
      twisted('worker', (right) => ({
        list: async (kind) => (await right.list(kind)).filter(({ leftMs }) => leftMs === null || leftMs > 0),
      })),
  },
  {
    flaw: 'a goodbye takes all types of a worker with it',
    killer: 'a goodbye is for the types that it names and for one worker, and may be said twice',
    alter: () =>
      twisted('worker', (right) => ({
        remove: async (kind, names) => {
          const workers = names.map((name) => name.split('\n')[0])
          const all = (await right.list(kind)).map(({ name }) => name)
          return right.remove(
            kind,
            all.filter((name) => workers.includes(name.split('\n')[0])),
          )
        },
      })),
  },
  {
    flaw: 'a second pause takes the place of the first',
    killer: 'the first pause stays as it was, and of two that pause or resume one succeeds',
    alter: () =>
      twisted('pause', (right) => ({
        save: async (kind, record, expected, options) => {
          await right.remove(kind, [record.name])
          return right.save(kind, record, expected, options)
        },
      })),
  },
  {
    flaw: 'why a type is paused is not kept',
    killer: 'a pause is seen by every view: who, why and since when, by type',
    alter: () =>
      twisted('pause', (right) => ({
        save: (kind, record, expected) => right.save(kind, { ...record, body: '{}' }, expected),
      })),
  },
  {
    flaw: 'the engine itself holds a paused type back',
    killer: 'a pause changes no job, and what is claimed all the same is handed out',
    alter: () => ({
      consumer: (right, { records }) => ({
        claim: async (request) => {
          const paused = (records && (await new Pauses(records).list())) ?? []
          const perType = { ...request.perType, ...Object.fromEntries(paused.map(({ type }) => [type, 0])) }
          return right.claim({ ...request, perType })
        },
      }),
    }),
  },
  {
    flaw: 'a note forgets what it was about',
    killer: 'an act that is not the desk’s is noted with what it was about, between the others',
    alter: () => letters((right) => ({ note: (note) => right.note({ ...note, subject: null }) })),
  },
]
