import type { DeadLetters } from '../../src/engine/dead-letters.ts'
import type { Pauses } from '../../src/engine/pauses.ts'
import type { RememberingPresence } from '../../src/engine/presence.ts'
import type { Alteration } from '../alter.ts'
import type { Mutant } from './mutant.ts'

function presence(twist: (right: RememberingPresence) => Partial<RememberingPresence>): Alteration {
  return {
    engine: ({ presence: right }) => (right === undefined ? {} : { presence: { ...right, ...twist(right) } }),
  }
}

function pauses(twist: (right: Pauses) => Partial<Pauses>): Alteration {
  return {
    engine: ({ pauses: right }) => (right === undefined ? {} : { pauses: { ...right, ...twist(right) } }),
  }
}

function letters(twist: (right: DeadLetters) => Partial<DeadLetters>): Alteration {
  return {
    engine: ({ deadLetters: right }) => (right === undefined ? {} : { deadLetters: { ...right, ...twist(right) } }),
  }
}

export const operatingMutants: readonly Mutant[] = [
  {
    flaw: 'a beat holds for ever',
    killer: 'a beat takes the place of the one before, and holds for as long as it says',
    alter: () => presence((right) => ({ beat: (beats) => right.beat(beats, 1e12) })),
  },
  {
    flaw: 'what a worker runs is not kept',
    killer: 'what a worker says of its types is seen by every view, all of it',
    alter: () =>
      presence((right) => ({
        beat: (beats, ttlMs) =>
          right.beat(
            beats.map(({ work: _, ...said }) => said),
            ttlMs,
          ),
      })),
  },
  {
    flaw: 'only those that live were ever seen',
    killer: 'who went without a goodbye can be missed for a day, and is then forgotten',
    alter: () =>
      presence((right) => ({
        seen: async () => (await right.list()).map(({ type, instance, atMs }) => ({ type, instance, atMs })),
      })),
  },
  {
    flaw: 'a goodbye takes all types of a worker with it',
    killer: 'a goodbye is for the types that it names and for one worker, and may be said twice',
    alter: () =>
      presence((right) => ({
        gone: async (instance) =>
          right.gone(
            instance,
            (await right.seen()).map(({ type }) => type),
          ),
      })),
  },
  {
    flaw: 'a second pause takes the place of the first',
    killer: 'the first pause stays as it was, and of two that pause or resume one succeeds',
    alter: () =>
      pauses((right) => ({
        pause: async (type, by) => {
          await right.resume(type)
          return right.pause(type, by)
        },
      })),
  },
  {
    flaw: 'why a type is paused is not kept',
    killer: 'a pause is seen by every view: who, why and since when, by type',
    alter: () => pauses((right) => ({ pause: (type, { who }) => right.pause(type, { who, reason: '' }) })),
  },
  {
    flaw: 'the engine itself holds a paused type back',
    killer: 'a pause changes no job, and what is claimed all the same is handed out',
    alter: () => ({
      consumer: (right, { pauses: port }) => ({
        claim: async (request) => {
          const paused = (await port?.list()) ?? []
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
