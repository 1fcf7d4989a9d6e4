import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { type OptionNames, refuseUnknown } from './known-options.ts'

/** Randomness in the delay, so that jobs that failed together do not retry together. */
export type Jitter = 'none' | 'equal' | 'full' | { readonly add: Duration }

export type Backoff =
  | {
      readonly kind: 'exponential'
      readonly base: Duration
      readonly max?: Duration
      readonly jitter?: Jitter
      /** The exponent at the first failure. 0: base, 2 × base, …; 1: starts at 2 × base. Default: 0. */
      readonly firstExponent?: 0 | 1
    }
  | { readonly kind: 'fixed'; readonly delay: Duration; readonly jitter?: Jitter }
  | { readonly kind: 'list'; readonly delays: readonly Duration[]; readonly jitter?: Jitter }

/** The default maximum of an exponential backoff. */
export const BACKOFF_MAX_DEFAULT_MS = 3_600_000

/**
 * The wait before the next start. `attempt` is the start that just failed, 1 for the first.
 * Additive jitter is applied after the cap, so `{ add: '1s' }` over a cap of 60 s can reach 61 s. A list that is too short
 * repeats its last entry.
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

/** The longest wait that a backoff can give. Compared with the engine's `retryDelayMaxMs` on enqueue. */
export function backoffMaxMs(backoff: Backoff, attempts: number): number {
  // Exponential waits stop growing after 64 failures, listed ones after the last entry.
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

/** Refuses a backoff that `backoffMs` could not compute. */
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

/** For backoffs in code. Stored ones may have names of a newer version. */
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
