/** Jobs as users have them: many types, large payloads, waits and work, some of them late, urgent or failing at first. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../src/testing/open-for-test.ts'
import type { Payload } from './payload.ts'

export const MIXED_TYPES = 50
const MIXED_BYTES = 10_000
const IO_MS = 5
const CPU_MS = 1

export interface MixedPayload extends Payload {
  /** Whether its handler waits; else it computes. */
  readonly waits: boolean
  /** Whether its first attempt fails. */
  readonly fails: boolean
}

export interface MixedJob {
  readonly type: string
  readonly urgency: 'first' | 'usual' | 'last'
  readonly delayMs: number
  readonly payload: MixedPayload
}

/** What a contender does not have; its jobs then do without. */
export type Lack = 'priorities' | 'retries'

export const mixedType = (index: number): string => `bench-${index}`

export const MIXED_TYPE_NAMES: readonly string[] = Array.from({ length: MIXED_TYPES }, (_, index) => mixedType(index))

/** Text that no store can make much smaller. */
const TEXT = Array.from({ length: 2 * MIXED_BYTES }, seededRandom(7))
  .map((draw) => String.fromCharCode(97 + Math.floor(draw * 26)))
  .join('')

/** The job of this number: the same in every process. `nowMs` is when it is sent, and 0 where no wait is measured. */
export function mixedJob(n: number, nowMs: number, lacks: ReadonlySet<Lack>): MixedJob {
  const random = seededRandom(n)
  // Five in a hundred are late.
  const delayMs = random() < 0.05 ? 100 + Math.floor(random() * 400) : 0
  const draw = random()
  const urgency = draw < 0.2 ? 'first' : draw < 0.4 ? 'last' : 'usual'
  const payload = {
    n,
    t: nowMs === 0 ? 0 : nowMs + delayMs,
    waits: random() < 0.5,
    fails: !lacks.has('retries') && n % 100 === 37,
  }
  const type = mixedType(Math.floor(random() * MIXED_TYPES))
  const from = Math.floor(random() * MIXED_BYTES)
  const pad = TEXT.slice(from, from + MIXED_BYTES - JSON.stringify({ ...payload, pad: '' }).length)
  return { type, urgency: lacks.has('priorities') ? 'usual' : urgency, delayMs, payload: { ...payload, pad } }
}

/** Thrown by the first attempt of a job that fails. */
export class Planned extends Error {
  constructor() {
    super('planned: the next attempt succeeds')
  }
}

export function isPlanned(error: unknown): boolean {
  return String(error).includes('planned: the next attempt succeeds')
}

const SAMPLE = Buffer.alloc(64 * 1_024, 1)
const SAMPLES = 50

/**
 * As much text as this machine hashes in a millisecond: the shortest of many samples, because the others were interrupted.
 * A fixed amount of work costs the same whatever else runs. Watching a thread's own processor time does not: Linux may count
 * it in steps of 4 ms.
 */
function textOfOneMillisecond(): Buffer {
  let shortestMs = Number.POSITIVE_INFINITY
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const startedMs = performance.now()
    digest(SAMPLE)
    shortestMs = Math.min(shortestMs, performance.now() - startedMs)
  }
  return Buffer.alloc(Math.ceil((SAMPLE.length * CPU_MS) / shortestMs), 1)
}

const digest = (text: Buffer): Buffer => createHash('sha256').update(text).digest()
let computed: Buffer | undefined

/** Five milliseconds of waiting, or one of this thread's processor time. */
export async function handleMixed({ waits }: MixedPayload): Promise<void> {
  if (waits) return sleep(IO_MS)
  computed ??= textOfOneMillisecond()
  digest(computed)
}
