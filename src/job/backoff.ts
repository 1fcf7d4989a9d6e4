import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { type OptionNames, refuseUnknown } from './known-options.ts'

/** What is added to, or taken from, the computed delay so that failures of one cause do not return in step. */
export type Jitter = 'none' | 'equal' | 'full' | { readonly add: Duration }

export type Backoff =
  | {
      readonly kind: 'exponential'
      readonly base: Duration
      readonly max?: Duration
      readonly jitter?: Jitter
      /** The exponent at the first failure: 0 gives base, 2 × base, …; 1 starts at 2 × base. */
      readonly firstExponent?: 0 | 1
    }
  | { readonly kind: 'fixed'; readonly delay: Duration; readonly jitter?: Jitter }
  | { readonly kind: 'list'; readonly delays: readonly Duration[]; readonly jitter?: Jitter }

/** No retry waits longer than this unless a definition says so (A10). */
export const BACKOFF_MAX_DEFAULT_MS = 3_600_000

/**
 * The wait before the next start. `attempt` is the start that just failed, 1 for the first.
 * The cap is applied before additive jitter, so `{ add: '1s' }` over a cap of 60 s can reach 61 s (X104).
 * A list that is too short repeats its last entry.
 */
export function backoffMs(backoff: Backoff, attempt: number, random: () => number): number {
  return Math.round(withJitter(plainMs(backoff, attempt), backoff.jitter ?? 'none', random))
}

function plainMs(backoff: Backoff, attempt: number): number {
  switch (backoff.kind) {
    case 'exponential': {
      const baseMs = parseDurationMs(backoff.base, 'backoff.base')
      const maxMs = parseDurationMs(backoff.max ?? BACKOFF_MAX_DEFAULT_MS, 'backoff.max')
      // The exponent is bounded because 0 × Infinity is not a number; 2^63 of anything but 0 is beyond every maximum.
      const exponent = Math.min(attempt - 1 + (backoff.firstExponent ?? 0), 63)
      return Math.min(baseMs * 2 ** exponent, maxMs)
    }
    case 'fixed':
      return parseDurationMs(backoff.delay, 'backoff.delay')
    case 'list': {
      const delay = backoff.delays[Math.min(attempt, backoff.delays.length) - 1]
      return parseDurationMs(delay ?? 0, 'backoff.delays')
    }
    default:
      backoff satisfies never
      throw new OptionError(`'backoff.kind' must be 'exponential', 'fixed' or 'list'`)
  }
}

function withJitter(ms: number, jitter: Jitter, random: () => number): number {
  if (jitter === 'none') return ms
  if (jitter === 'full') return ms * random()
  if (jitter === 'equal') return ms / 2 + (ms / 2) * random()
  return ms + random() * parseDurationMs(jitter.add, 'backoff.jitter.add')
}

/** The longest wait a policy can answer: compared with the engine's `retryDelayMaxMs` at the door. */
export function backoffMaxMs(backoff: Backoff, attempts: number): number {
  // Exponential waits no longer grow after 64 failures, listed ones no longer change after the last entry.
  const failuresMax = Math.min(attempts - 1, backoff.kind === 'list' ? backoff.delays.length : 64)
  let longestMs = 0
  for (let attempt = 1; attempt <= failuresMax; attempt += 1) {
    longestMs = Math.max(
      longestMs,
      backoffMs(backoff, attempt, () => 1),
    )
  }
  return longestMs
}

/** Refuses, when a job is defined or enqueued, whatever `backoffMs` could not answer when it fails. */
export function checkBackoff(backoff: Backoff): void {
  checkKind(backoff)
  checkJitter(backoff.jitter ?? 'none')
  if (backoff.kind === 'list') checkDelays(backoff.delays)
  if (backoff.kind === 'exponential') checkExponential(backoff)
  backoffMs(backoff, 1, () => 0)
}

const BACKOFF_NAMES = {
  exponential: { kind: true, base: true, max: true, jitter: true, firstExponent: true },
  fixed: { kind: true, delay: true, jitter: true },
  list: { kind: true, delays: true, jitter: true },
} satisfies { readonly [Kind in Backoff['kind']]: OptionNames<Extract<Backoff, { kind: Kind }>> }

/** Where a backoff is written. One that is stored may have names that a newer version knows. */
export function checkBackoffNames(backoff: Backoff): void {
  checkKind(backoff)
  refuseUnknown<object>(backoff, BACKOFF_NAMES[backoff.kind], `'backoff'`)
}

const KINDS: ReadonlySet<unknown> = new Set(['exponential', 'fixed', 'list'])

function checkKind(backoff: Backoff | null): void {
  if (typeof backoff === 'object' && backoff !== null && KINDS.has(backoff.kind)) return
  throw new OptionError(`'backoff.kind' must be 'exponential', 'fixed' or 'list'`)
}

function checkJitter(jitter: Jitter): void {
  if (jitter === 'none' || jitter === 'equal' || jitter === 'full') return
  if (typeof jitter === 'object' && jitter !== null) return void parseDurationMs(jitter.add, 'backoff.jitter.add')
  throw new OptionError(`'backoff.jitter' must be 'none', 'equal', 'full' or { add: '1s' }`)
}

function checkDelays(delays: readonly Duration[]): void {
  if (!Array.isArray(delays) || delays.length === 0) {
    throw new OptionError(`'backoff.delays' is empty; give at least one duration`)
  }
  for (const delay of delays) parseDurationMs(delay, 'backoff.delays')
}

function checkExponential(backoff: Backoff & { readonly kind: 'exponential' }): void {
  const baseMs = parseDurationMs(backoff.base, 'backoff.base')
  const maxMs = parseDurationMs(backoff.max ?? BACKOFF_MAX_DEFAULT_MS, 'backoff.max')
  if (baseMs > maxMs) {
    throw new OptionError(`'backoff.base' (${baseMs} ms) is above 'backoff.max' (${maxMs} ms); raise 'backoff.max'`)
  }
  const { firstExponent = 0 } = backoff
  if (firstExponent !== 0 && firstExponent !== 1) {
    throw new OptionError(`'backoff.firstExponent' is ${firstExponent}; give 0 or 1`)
  }
}
