import type { Beat, Seen } from '../engine/presence.ts'
import type { ExplainedJob } from './explanation.ts'

export interface CrewMember {
  readonly worker: string
  /** When it last ended a job of any type, or started; null where it does not say. */
  readonly activeAtMs: number | null
  /** False where it does not say how many slots it has. */
  readonly isFull: boolean
  /** What its handlers ran when it last spoke, those that run longest. */
  readonly jobs: readonly ExplainedJob[]
}

/** The workers of one type, by what they last said. */
export interface Crew {
  readonly running: readonly CrewMember[]
  readonly stopping: readonly string[]
  /** Those that went without a goodbye, and when they were last heard. */
  readonly missing: readonly { readonly worker: string; readonly seenAtMs: number }[]
}

/** `concurrency`: how many of the type one worker runs at once, where its definition says so. */
export function crewOf(
  type: string,
  { beats, seen }: { readonly beats: readonly Beat[]; readonly seen: readonly Seen[] },
  concurrency: number | null,
): Crew {
  const own = beats.filter((beat) => beat.type === type)
  const heard = new Set(own.map(({ instance }) => instance))
  return {
    running: own.filter(({ status }) => status === 'RUNNING').map((beat) => memberOf(beat, beats, concurrency)),
    stopping: own.filter(({ status }) => status === 'SHUTTING_DOWN').map(({ instance }) => instance),
    missing: seen
      .filter((one) => one.type === type && !heard.has(one.instance))
      .map(({ instance, atMs }) => ({ worker: instance, seenAtMs: atMs })),
  }
}

function memberOf(beat: Beat, beats: readonly Beat[], concurrency: number | null): CrewMember {
  const { instance, work } = beat
  // A worker beats once for each of its types, and its slots are for all of them.
  const all = beats.filter((other) => other.instance === instance)
  const taken = all.reduce((sum, other) => sum + (other.work?.running ?? 0), 0)
  const isNarrow = work !== undefined && concurrency !== null && work.running >= concurrency
  const isFull = work !== undefined && taken >= work.concurrency
  const holding = isFull ? all : [beat]
  const times = all.flatMap((other) => [other.lastJobAtMs ?? [], other.work?.startedAtMs ?? []].flat())
  return {
    worker: instance,
    activeAtMs: times.length === 0 ? null : Math.max(...times),
    isFull: isFull || isNarrow,
    jobs: holding.flatMap(({ type, work: its }) =>
      (its?.jobs ?? []).map(({ id }) => ({ id, type, state: 'in_progress' })),
    ),
  }
}
