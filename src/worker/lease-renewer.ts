import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker as Thread } from 'node:worker_threads'
import { moduleFile } from '../engine/module-file.ts'
import type { LostReason } from '../engine/outcome.ts'
import { MillraceError, messageOf } from '../errors.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { waitAtMost } from '../time/wait.ts'
import { type Renewable, Renewals, type RenewalsParts } from './renewals.ts'
import {
  type FromRenewalThread,
  LeaseWriter,
  RENEWAL_PROTOCOL,
  type RenewalThreadData,
  type SharedLease,
  type ToRenewalThread,
} from './shared-leases.ts'

/** Renews the leases that a worker holds. Every call takes a whole batch. */
export interface LeaseRenewer {
  /** Call before the first handler of the batch: a handler may block this thread. */
  hold(leases: readonly SharedLease[]): void
  drop(leases: readonly SharedLease[]): void
  /** Resolves when leases are renewed even while a handler blocks this thread, or when that is impossible here. */
  readonly ready: Promise<void>
  close(): Promise<void>
}

export interface LeaseRenewerParts {
  readonly clock: Clock
  readonly consumer: RenewalsParts['consumer']
  readonly worker: string
  readonly threadUrl: string | null
  /** All leases held now, without those reported as lost. */
  held(): Iterable<SharedLease>
  onLost(handle: number, reason: LostReason): void
  onError(during: string, error: unknown): void
}

/** A thread can share the system clock but not a test clock; with any other clock renewal stays on this event loop. */
export function startLeaseRenewer(parts: LeaseRenewerParts): LeaseRenewer {
  if (parts.threadUrl === null || parts.clock !== systemClock) return renewOnThisLoop(parts)
  return startRenewalThread(parts, parts.threadUrl, () => renewOnThisLoop(parts))
}

/** The engine itself watches a lease without an end. */
function expires({ lease }: Renewable): boolean {
  return lease.expiresAtMs !== null
}

function renewOnThisLoop({ clock, consumer, held, onLost, onError }: LeaseRenewerParts): LeaseRenewer {
  const renewals = new Renewals({
    clock,
    consumer,
    held: () => [...held()].filter(expires),
    onLost,
    onError: (error) => onError('renew', error),
  })
  return {
    hold: (leases) => {
      for (const { lease, leaseMs } of leases) if (lease.expiresAtMs !== null) renewals.watch(leaseMs)
    },
    drop: () => {},
    ready: Promise.resolve(),
    close: async () => renewals.close(),
  }
}

/** A thread that has not closed by then is terminated. */
const CLOSE_MS = 4_000

/** The thread holds little more than ids and tokens. */
const LIMITS = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 }

/**
 * A bundled program has the thread's file beside it, when it was built as a second entry, or in the installed package.
 * Null when neither is there.
 */
function threadFile(): URL | null {
  const here = moduleFile(import.meta.url)
  for (const extension of ['js', 'mjs', 'cjs', 'ts']) {
    const beside = new URL(`./renewal-thread.${extension}`, here)
    if (existsSync(beside)) return beside
  }
  try {
    return pathToFileURL(createRequire(here).resolve('millrace/renewal-thread'))
  } catch {
    return null
  }
}

const BUNDLED =
  'this program was bundled without the file of the renewal thread; build millrace/renewal-thread as a second entry, named renewal-thread, beside the bundle, or keep millrace out of the bundle (external)'

export function startRenewalThread(parts: LeaseRenewerParts, url: string, fallBack: () => LeaseRenewer): LeaseRenewer {
  const file = threadFile()
  if (file !== null) return new ThreadRenewer(parts, { file, url }, fallBack)
  reportMissing(parts, new MillraceError('ERR_MODULE_MISSING', BUNDLED))
  return fallBack()
}

/**
 * Also warns on standard error, once per worker: without a log or an event listener, the first sign would be a job that
 * ran twice.
 */
function reportMissing({ worker, onError }: LeaseRenewerParts, error: unknown): void {
  onError('renewal thread', error)
  process.emitWarning(
    `worker ${worker} has no renewal thread: a handler that blocks the event loop for longer than its lease loses it, and the job runs again. ${messageOf(error)}`,
    { type: 'MillraceWarning', code: 'MILLRACE_NO_RENEWAL_THREAD' },
  )
}

/** The worker's side of the renewal thread. If the thread dies, renewal continues on this event loop. */
class ThreadRenewer implements LeaseRenewer {
  readonly ready: Promise<void>
  readonly #parts: LeaseRenewerParts
  readonly #fallBack: () => LeaseRenewer
  readonly #thread: Thread
  readonly #exited: Promise<void>
  readonly #leases = new LeaseWriter((page) => this.#send({ kind: 'page', page }))
  readonly #watched = new Set<number>()
  #instead: LeaseRenewer | null = null
  #closing = false
  #isReady = false

  constructor(parts: LeaseRenewerParts, { file, url }: { file: URL; url: string }, fallBack: () => LeaseRenewer) {
    this.#parts = parts
    this.#fallBack = fallBack
    const workerData: RenewalThreadData = { protocol: RENEWAL_PROTOCOL, url, worker: parts.worker }
    // The process has already printed Node's warning about SQLite.
    const execArgv = ['--disable-warning=ExperimentalWarning']
    const thread = new Thread(file, { workerData, execArgv, name: 'millrace-renewal', resourceLimits: LIMITS })
    this.#thread = thread
    const ready = Promise.withResolvers<void>()
    this.ready = ready.promise
    this.#exited = new Promise((resolve) => {
      thread.once('exit', (code) => {
        this.#failed(new MillraceError('ERR_CLOSED', `the renewal thread ended with code ${code}`))
        ready.resolve()
        resolve()
      })
    })
    thread.once('error', (error) => this.#failed(error))
    thread.on('message', (received: FromRenewalThread) => {
      if (received.kind !== 'ready') return this.#receive(received)
      // From now on the worker keeps the process alive, not the thread.
      thread.unref()
      this.#isReady = true
      ready.resolve()
    })
  }

  hold(leases: readonly SharedLease[]): void {
    if (this.#instead !== null) {
      this.#instead.hold(leases)
      return
    }
    for (const kept of leases) {
      if (kept.lease.expiresAtMs === null) continue
      this.#leases.write(kept)
      this.#watch(kept.leaseMs)
    }
  }

  drop(leases: readonly SharedLease[]): void {
    for (const kept of leases) this.#leases.clear(kept)
  }

  /** The thread checks every third of each lease length it knows, whether or not a lease is held. */
  #watch(leaseMs: number): void {
    if (this.#watched.has(leaseMs)) return
    this.#watched.add(leaseMs)
    this.#send({ kind: 'watch', leaseMs })
  }

  async close(): Promise<void> {
    this.#closing = true
    if (this.#instead !== null) return this.#instead.close()
    // Keeps the process alive until the thread has closed its connection.
    this.#thread.ref()
    this.#send({ kind: 'close' })
    if (await waitAtMost(this.#parts.clock, CLOSE_MS, this.#exited)) return
    this.#parts.onError(
      'renewal thread',
      new Error(`the thread did not close within ${CLOSE_MS} ms and was terminated`),
    )
    await this.#thread.terminate()
  }

  #send(sent: ToRenewalThread): void {
    this.#thread.postMessage(sent)
  }

  #receive(received: Exclude<FromRenewalThread, { kind: 'ready' }>): void {
    switch (received.kind) {
      case 'lost':
        this.#parts.onLost(received.handle, received.reason)
        return
      case 'error':
        this.#parts.onError('renew', new MillraceError('ERR_STORAGE_FAILED', `${received.name}: ${received.message}`))
        return
      default:
        received satisfies never
    }
  }

  #failed(error: unknown): void {
    if (this.#closing || this.#instead !== null) return
    this.#instead = this.#fallBack()
    if (this.#isReady) this.#parts.onError('renewal thread', error)
    else reportMissing(this.#parts, error)
    this.#instead.hold([...this.#parts.held()])
  }
}
