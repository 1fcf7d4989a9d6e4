/** What is judged alike on every server: its version, its clock, how fast it answers. */
import type { Finding } from '../engine/engine.ts'
import type { Clock } from '../time/clock.ts'
import { failure, formatAge, ok, plural, warning } from './findings.ts'

export function judgeServerVersion({
  name,
  isTooOld,
  isMaintained,
  oldest,
}: {
  /** With its version, such as «Postgres 17.2». */
  readonly name: string
  readonly isTooOld: boolean
  readonly isMaintained: boolean
  /** The oldest version that Millrace runs on. */
  readonly oldest: string
}): Finding {
  if (isTooOld) return failure('server version', `${name} is too old`, `Upgrade the server to ${oldest} or later.`)
  if (isMaintained) return ok('server version', name)
  return warning(
    'server version',
    `${name} no longer gets fixes from its makers`,
    `Upgrade the server. Millrace runs on ${oldest} and later.`,
  )
}

/** Two clocks of one network, or two readings of one clock, differ by less. */
const TOLERANCE_MS = 5_000
const SYNCHRONISE = 'Synchronise both with a time server.'

/** Leases and due times follow the server's clock alone; dates computed on this machine do not. */
export function judgeServerClock(serverMs: number, beforeMs: number, afterMs: number): Finding {
  const skewMs = serverMs < beforeMs ? serverMs - beforeMs : Math.max(0, serverMs - afterMs)
  if (Math.abs(skewMs) <= TOLERANCE_MS) return ok('clock', 'this machine and the server agree')
  return warning(
    'clock',
    `the server's clock is ${formatAge(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's: leases are right, but dates and schedules computed here fall due at another time`,
    SYNCHRONISE,
  )
}

/** What is dated in the future shows that a clock is or was wrong. `aheadMs`: by how much, for each that was read. */
export function judgeFuture(
  dated: readonly { readonly name: string; readonly aheadMs: number }[],
  { consequence, severity }: { readonly consequence: string; readonly severity: 'warning' | 'error' },
): Finding {
  const ahead = dated.filter(({ aheadMs }) => aheadMs > TOLERANCE_MS)
  const [furthest] = ahead.toSorted((left, right) => right.aheadMs - left.aheadMs)
  if (furthest === undefined) return ok('clock', 'no job is dated in the future')
  return (severity === 'error' ? failure : warning)(
    'clock',
    `${plural(ahead.length, 'date')} in the future, ${furthest.name} by ${formatAge(furthest.aheadMs)}: a clock is or was wrong; ${consequence}`,
    'Compare the clocks of this machine and of all producers with a time server, and keep them synchronised.',
  )
}

/** How long a step of the clock is reported. */
const STEP_REPORTED_MS = 86_400_000

export function judgeClockStep(step: { readonly stepMs: number; readonly agoMs: number } | null): readonly Finding[] {
  if (step === null || step.agoMs >= STEP_REPORTED_MS) return []
  const { stepMs, agoMs } = step
  return [
    warning(
      'clock',
      `the clock of this machine was set ${stepMs < 0 ? 'back' : 'forward'} by ${formatAge(Math.abs(stepMs))}, ${formatAge(Math.max(0, agoMs))} ago, or the machine was suspended; leases and rate limits were moved with it`,
      'Use a time server that corrects the clock in small steps.',
    ),
  ]
}

const PINGS = 7
const SLOW_MS = 25

/** How long a few round trips took, one after the other. */
export async function measureLatency(clock: Clock, ping: () => Promise<unknown>): Promise<readonly number[]> {
  const took: number[] = []
  for (let index = 0; index < PINGS; index += 1) {
    const fromMs = clock.monotonicMs()
    await ping()
    took.push(clock.monotonicMs() - fromMs)
  }
  return took
}

/** By the median, so that one slow answer is no finding. `slowQueries`: how to find what slows the server down. */
export function judgeLatency(tookMs: readonly number[], slowQueries = ''): Finding {
  const sorted = tookMs.toSorted((left, right) => left - right)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const text = `a round trip takes ${median.toFixed(1)} ms (${(sorted.at(-1) ?? 0).toFixed(1)} ms at most of ${sorted.length})`
  if (median < SLOW_MS) return ok('latency', text)
  return warning(
    'latency',
    `${text}: every enqueue, claim and result waits for one`,
    `Run workers and producers nearer to the server.${slowQueries}`,
  )
}
