/**
 * The leases that a worker holds, in memory shared with its renewal thread. A message per batch cost more than running
 * short jobs. Instead the worker writes each lease into shared memory and clears it when the job ends; most are cleared
 * before the thread looks.
 */
import type { Lease, LostReason } from '../engine/outcome.ts'
import { THREAD_STARTED_MS } from '../time/clock.ts'
import type { Renewable } from './renewals.ts'

const SLOTS_PER_PAGE = 256
const SLOT_BYTES_MIN = 512

/** Offsets in a slot, in words of four bytes. */
const TURN = 0
const ID_LENGTH = 1
const TYPE_LENGTH = 2
const TEXT_LENGTH = 3
/** Offsets in a slot, in words of eight bytes. A handle needs eight: it outgrows four in a day or two. */
const HANDLE = 2
const HELD_AT_MS = 3
const LEASE_MS = 4
const TIMEOUT_MS = 5
/** In bytes. The id, the type and the token follow each other in UTF-16, so that no character is altered. */
const TEXT = 48

/** A lease with its slot in shared memory. */
export interface SharedLease extends Renewable {
  slot: Slot | null
}

/**
 * Space for one lease. Its first word is a counter that the writer increments after filling the slot and after clearing
 * it, so it is odd while the lease is held. A reader that finds the counter unchanged has read one lease, not parts of
 * two.
 */
class Slot {
  readonly bytes: number
  readonly #memory: Buffer
  readonly #words: Int32Array
  readonly #numbers: Float64Array

  constructor(page: SharedArrayBuffer, nth: number) {
    this.bytes = page.byteLength / SLOTS_PER_PAGE
    const at = nth * this.bytes
    this.#memory = Buffer.from(page, at, this.bytes)
    this.#words = new Int32Array(page, at, TEXT / 4)
    this.#numbers = new Float64Array(page, at, TEXT / 8)
  }

  fill({ handle, lease, heldAtMs, leaseMs, timeoutMs }: Renewable, text: string): void {
    const { id, type } = lease.job
    this.#words[ID_LENGTH] = id.length
    this.#words[TYPE_LENGTH] = type.length
    this.#words[TEXT_LENGTH] = text.length
    this.#numbers[HANDLE] = handle
    this.#numbers[HELD_AT_MS] = heldAtMs + THREAD_STARTED_MS
    this.#numbers[LEASE_MS] = leaseMs
    this.#numbers[TIMEOUT_MS] = timeoutMs
    this.#memory.write(text, TEXT, 'utf16le')
    Atomics.add(this.#words, TURN, 1)
  }

  clear(): void {
    Atomics.add(this.#words, TURN, 1)
  }

  /** The lease in this slot: a known one or a new one. Null for an empty slot. */
  read(known: ReadonlyMap<number, ReadLease>): ReadLease | null {
    const turn = Atomics.load(this.#words, TURN)
    if (turn % 2 === 0) return null
    const handle = this.#numbers[HANDLE] ?? 0
    const lease = known.get(handle) ?? this.#readNew(handle)
    return Atomics.load(this.#words, TURN) === turn ? lease : null
  }

  #readNew(handle: number): ReadLease {
    const [, idLength = 0, typeLength = 0, textLength = 0] = this.#words
    const text = this.#memory.toString('utf16le', TEXT, TEXT + 2 * textLength)
    const typeEnd = idLength + typeLength
    const heldAtMs = (this.#numbers[HELD_AT_MS] ?? 0) - THREAD_STARTED_MS
    return {
      handle,
      lease: leaseOf(text.slice(0, idLength), text.slice(idLength, typeEnd), text.slice(typeEnd)),
      heldAtMs,
      leaseMs: this.#numbers[LEASE_MS] ?? 0,
      timeoutMs: this.#numbers[TIMEOUT_MS] ?? 0,
      renewedAtMs: heldAtMs,
      isLost: false,
    }
  }
}

/** The worker's side. */
export class LeaseWriter {
  readonly #share: (page: SharedArrayBuffer) => void
  /** By size. */
  readonly #free = new Map<number, Slot[]>()

  /** `share` hands a new, empty page to the reader. */
  constructor(share: (page: SharedArrayBuffer) => void) {
    this.#share = share
  }

  write(kept: SharedLease): void {
    const { job, token } = kept.lease
    const text = job.id + job.type + token
    kept.slot = this.#take(TEXT + 2 * text.length)
    kept.slot.fill(kept, text)
  }

  clear(kept: SharedLease): void {
    const { slot } = kept
    if (slot === null) return
    kept.slot = null
    slot.clear()
    this.#free.get(slot.bytes)?.push(slot)
  }

  #take(bytes: number): Slot {
    let size = SLOT_BYTES_MIN
    while (size < bytes) size *= 2
    let free = this.#free.get(size)
    if (free === undefined) {
      free = []
      this.#free.set(size, free)
    }
    return free.pop() ?? this.#addPage(size, free)
  }

  #addPage(size: number, free: Slot[]): Slot {
    const page = new SharedArrayBuffer(size * SLOTS_PER_PAGE)
    this.#share(page)
    const [first, ...others] = slotsOf(page)
    free.push(...others)
    return first
  }
}

interface ReadLease extends Renewable {
  isLost: boolean
}

/** The thread's side. */
export class LeaseReader {
  readonly #slots: Slot[] = []
  #known: ReadonlyMap<number, ReadLease> = new Map()

  add(page: SharedArrayBuffer): void {
    this.#slots.push(...slotsOf(page))
  }

  /** All leases held now that were not lost. A lease seen before is the same object. */
  held(): readonly Renewable[] {
    const known = new Map<number, ReadLease>()
    for (const slot of this.#slots) {
      const lease = slot.read(this.#known)
      if (lease !== null) known.set(lease.handle, lease)
    }
    this.#known = known
    return [...known.values()].filter(({ isLost }) => !isLost)
  }

  /** True if the lease was held until now. */
  lose(handle: number): boolean {
    const lease = this.#known.get(handle)
    if (lease === undefined || lease.isLost) return false
    lease.isLost = true
    return true
  }
}

function slotsOf(page: SharedArrayBuffer): [Slot, ...Slot[]] {
  const others = Array.from({ length: SLOTS_PER_PAGE - 1 }, (_, index) => new Slot(page, index + 1))
  return [new Slot(page, 0), ...others]
}

/** `renew` reads only the id, the type and the token. */
function leaseOf(id: string, type: string, token: string): Lease {
  const job = {
    id,
    type,
    payload: 'null',
    payloadVersion: 1,
    priority: 5,
    attempts: 1,
    createdAtMs: 0,
    runAtMs: 0,
    key: null,
    latestKey: null,
    tenant: null,
    options: null,
    after: null,
  }
  return { job, attempt: 1, token, expiresAtMs: 0 }
}

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
