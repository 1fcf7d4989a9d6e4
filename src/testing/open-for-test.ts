import { type Mill, open } from '../client/mill.ts'
import type { MillOptions } from '../client/options.ts'
import { openEngine } from '../engine/open.ts'
import { type CapturedEvent, captureEvents, capturingLog, type LogLine } from './capture.ts'
import type { Faults } from './fault-injection.ts'
import { TestClock } from './test-clock.ts'

export interface TestMillOptions extends Omit<MillOptions, 'clock' | 'random' | 'log'> {
  /** Default: `memory:`. A `sqlite:` URL of a temporary file shows the same behaviour on disk. */
  readonly engine?: string
  /** When the clock starts, in milliseconds since the epoch. Default: the first of January 2026. */
  readonly startMs?: number
  /** For jitter. Default: 1, so that every run of a test is the same. */
  readonly seed?: number
  readonly faults?: Faults
}

/** A mill that a test owns: nothing in it happens by real time or by chance. */
export interface TestMill extends AsyncDisposable {
  readonly mill: Mill
  readonly clock: TestClock
  /** What was logged so far, handlers' own lines included. */
  readonly lines: readonly LogLine[]
  /** What happened so far, in order. */
  readonly events: readonly CapturedEvent[]
  /** Closes the mill, and moves the clock for as long as its workers need time to stop. */
  close(): Promise<void>
}

/** One step of the clock while a mill closes. A drain of 30 s, then aborting, then releasing, fits into two. */
const CLOSE_STEP = '30s'

/**
 * Opens a mill for a test: the memory engine, a clock that moves when told, seeded jitter, and everything that is
 * logged or told kept for assertions.
 *
 * @example
 * await using test = await openForTest()
 * const receipt = await test.mill.enqueue(greet, { name: 'Ann' })
 * await drain(test.mill, [greet])
 */
export async function openForTest(options: TestMillOptions = {}): Promise<TestMill> {
  const { engine: url = 'memory:', startMs, seed = 1, faults, ...rest } = options
  const clock = new TestClock(startMs)
  const lines: LogLine[] = []
  const events: CapturedEvent[] = []
  const engine = await openEngine(url, { clock, migrate: rest.migrate ?? true })
  const target = faults === undefined ? engine : faults.wrap(engine, clock)
  const mill = await open(target, { ...rest, clock, random: seededRandom(seed), log: capturingLog(lines) })
  captureEvents(mill.events, events)
  const close = (): Promise<void> => closeWith(mill, clock)
  return { mill, clock, lines, events, close, [Symbol.asyncDispose]: close }
}

async function closeWith(mill: Mill, clock: TestClock): Promise<void> {
  let isClosed = false
  const closed = mill.close()
  const onClosed = (): void => {
    isClosed = true
  }
  closed.then(onClosed, onClosed)
  // A handler that heeds no signal is given back by the clock alone; each step lets the event loop turn.
  while (!isClosed) await clock.advance(CLOSE_STEP)
  await closed
}

/**
 * Numbers from 0 up to 1 that are the same for the same seed, so that a failing test can be run again as it was.
 *
 * @example
 * const mill = await open('memory:', { random: seededRandom(7) })
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  // Mulberry32: 32 bits of state are plenty for jitter, and nothing here is a secret.
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
