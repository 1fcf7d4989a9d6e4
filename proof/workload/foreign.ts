/** Jobs of other programs: what they are to write, and what the history keeps of it. */
import type { Clock } from '../../src/time/clock.ts'
import type { AskedJob } from '../history/entry.ts'
import { digestOf, type Recorder } from '../history/recorder.ts'
import { Dice } from './dice.ts'
import type { Behaviour } from './operation.ts'

/** Another program that enqueues: psql, sqlite3, plain BullMQ, Kafka's console producer. */
export interface Producer {
  readonly program: string
  /** What Millrace takes for the priority and the attempts of its jobs. */
  readonly priority: number
  readonly attempts: number
  /** The id that the program gives to the job with this number, as Millrace knows it; null where it cannot choose one. */
  idOf(type: string, n: number): string | null
  /** Starts the program, which writes the jobs. Resolves when it says that they are stored, and rejects when it does not. */
  produce(type: string, jobs: readonly ForeignJob[]): Promise<void>
}

export interface ForeignJob {
  readonly n: number
  /** JSON text. */
  readonly payload: string
}

/** What another program writes in one go. */
export interface ForeignOperation {
  readonly afterMs: number
  readonly type: string
  /** `isBad`: with a payload that the schema refuses. */
  readonly jobs: readonly { readonly n: number; readonly behaviours: readonly Behaviour[]; readonly isBad?: true }[]
}

/** How many jobs another program writes in one go at most: each time it is a process that starts. */
const AT_ONCE_MAX = 25

/**
 * What other programs write, spread over `spanMs`. The same options give the same jobs.
 *
 * @example
 * const operations = generateForeign({ seed: 7, jobs: 50, spanMs: 10_000 })
 */
export function generateForeign({
  seed,
  jobs,
  spanMs,
}: {
  readonly seed: number
  readonly jobs: number
  readonly spanMs: number
}): readonly ForeignOperation[] {
  const dice = new Dice(seed)
  const times = Math.ceil(jobs / AT_ONCE_MAX)
  return Array.from({ length: times }, (_, index): ForeignOperation => {
    const first = index * AT_ONCE_MAX
    return {
      afterMs: Math.round((spanMs / times) * dice.between(50, 100) * 0.01),
      type: 'foreign',
      jobs: Array.from({ length: Math.min(AT_ONCE_MAX, jobs - first) }, (_, place) => ({
        n: first + place + 1,
        behaviours: [dice.chance(0.1) ? { do: 'throw', afterMs: 1, how: 'error' } : { do: 'return', afterMs: 1 }],
        ...(dice.chance(0.05) && { isBad: true as const }),
      })),
    }
  })
}

/**
 * Lets the programs write their jobs, one program after the other. A program that fails leaves it unknown whether its jobs
 * were stored.
 *
 * @example
 * await performForeign(generateForeign({ seed: 7, jobs: 50, spanMs: 10_000 }), producers, { recorder, clock, signal })
 */
export async function performForeign(
  operations: readonly ForeignOperation[],
  producers: readonly Producer[],
  { recorder, clock, signal }: { readonly recorder: Recorder; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  for (const [index, operation] of operations.entries()) {
    const producer = producers[index % producers.length]
    if (producer === undefined) return
    await clock.sleep(operation.afterMs, signal)
    if (signal.aborted) return
    const { program } = producer
    const jobs = operation.jobs.map(foreignJob)
    const asked = jobs.map((job) => askedJob(producer, operation.type, job))
    for (const job of asked) recorder.note({ what: 'foreign', job, program })
    const isStored = await producer.produce(operation.type, jobs).then(
      () => true,
      () => false,
    )
    if (isStored) for (const job of asked) recorder.note({ what: 'foreign', job, program, isStored })
  }
}

function foreignJob({ n, behaviours, isBad }: ForeignOperation['jobs'][number]): ForeignJob {
  return { n, payload: JSON.stringify(isBad === true ? { n } : { n, behaviours }) }
}

function askedJob(producer: Producer, type: string, { n, payload }: ForeignJob): AskedJob {
  const { priority, attempts } = producer
  return { id: producer.idOf(type, n) ?? '', type, priority, attempts, digest: digestOf(payload), payloadVersion: 1 }
}
