import type { LostReason } from '../engine/outcome.ts'

/** What the renewal thread is started with. */
export interface RenewalThreadData {
  readonly url: string
  readonly worker: string
}

/**
 * To the thread. Parallel arrays of plain values, one post for a whole batch of one type: copying jobs with their
 * payloads would cost more than running them.
 */
export type ToRenewalThread =
  | {
      readonly kind: 'hold'
      readonly type: string
      readonly leaseMs: number
      readonly handles: readonly number[]
      readonly ids: readonly string[]
      readonly tokens: readonly string[]
      readonly timeoutMs: readonly number[]
    }
  | { readonly kind: 'drop'; readonly handles: readonly number[] }
  | { readonly kind: 'close' }

/** From the thread. */
export type FromRenewalThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'lost'; readonly handle: number; readonly reason: LostReason }
  /** A renewal failed and will be tried again. */
  | { readonly kind: 'error'; readonly name: string; readonly message: string }
