import type { LostReason } from '../engine/outcome.ts'

/** What the renewal thread is started with. */
export interface RenewalThreadData {
  readonly url: string
  readonly worker: string
}

/**
 * To the thread. One post for a whole batch of one type, and of its jobs only what renewing needs: copying them with
 * their payloads would cost more than running them. Ids and tokens are one text each, because most jobs are over before
 * the thread has to read it.
 */
export type ToRenewalThread =
  | {
      readonly kind: 'hold'
      readonly type: string
      readonly leaseMs: number
      readonly handles: readonly number[]
      /** JSON of a list of texts, in the order of the handles. */
      readonly ids: string
      readonly tokens: string
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
