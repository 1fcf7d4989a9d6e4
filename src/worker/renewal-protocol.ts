import type { LostReason } from '../engine/outcome.ts'

/** Changes with the messages and the layout of the pages, because a bundle may find the thread of another version. */
export const RENEWAL_PROTOCOL = 1

/** What the renewal thread is started with. */
export interface RenewalThreadData {
  readonly protocol: number
  readonly url: string
  readonly worker: string
}

/** To the thread. What it is to renew stands in the pages; shared-leases.ts says how. */
export type ToRenewalThread =
  | { readonly kind: 'page'; readonly page: SharedArrayBuffer }
  /** Leases of this length are held from now on. */
  | { readonly kind: 'watch'; readonly leaseMs: number }
  | { readonly kind: 'close' }

/** From the thread. */
export type FromRenewalThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'lost'; readonly handle: number; readonly reason: LostReason }
  /** A renewal failed and will be tried again. */
  | { readonly kind: 'error'; readonly name: string; readonly message: string }
