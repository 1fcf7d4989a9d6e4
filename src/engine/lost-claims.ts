import { isMillraceError } from '../errors.ts'
import { backgroundClock } from '../time/clock.ts'

/** Why a job that was taken back is queued again; stands in its history. */
export const LOST_CLAIM_REASON = 'the answer to its claim was lost'

/**
 * Pauses between the looks for one claim, in milliseconds. One look is not enough: a statement whose connection broke may
 * still be on its way to a server that stood still.
 */
const PAUSES_MS = [0, 250, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000] as const
/** While the store is away. */
const RETRY_MS = 250
/** How long an engine that closes waits for the look that is under way. */
const CLOSE_MS = 1_000

interface Look {
  /** How many there were. */
  readonly count: number
  /** When the next one is due, by the monotonic clock. */
  readonly dueMs: number
}

/**
 * Claims whose answer never arrived. The store may have leased jobs to this process that nobody here knows of: they would
 * wait until the lease runs out, and count as a start though no handler saw them. Each such claim is looked for as soon as
 * the store answers again, and what it holds is taken back.
 */
export class LostClaims<Claim> {
  readonly #takeBack: (claims: readonly Claim[]) => Promise<readonly Claim[]>
  readonly #looks = new Map<Claim, Look>()
  readonly #closing = new AbortController()
  #pause = new AbortController()
  #looking: Promise<void> | null = null

  /** `takeBack` undoes the claims that have happened, and answers those. */
  constructor(takeBack: (claims: readonly Claim[]) => Promise<readonly Claim[]>) {
    this.#takeBack = takeBack
  }

  /** Passes the answer on. An error that leaves open whether the claim has happened makes it a lost one. */
  async guard<Value>(claim: Claim, run: () => Promise<Value>): Promise<Value> {
    try {
      return await run()
    } catch (error) {
      if (isInDoubt(error)) this.#add(claim)
      throw error
    }
  }

  #add(claim: Claim): void {
    if (this.#closing.signal.aborted) return
    this.#looks.set(claim, { count: 0, dueMs: backgroundClock.monotonicMs() })
    this.#pause.abort()
    this.#looking ??= this.#lookUntilFound()
  }

  async #lookUntilFound(): Promise<void> {
    const { signal } = this.#closing
    while (this.#looks.size > 0 && !signal.aborted) {
      const dueMs = Math.min(...[...this.#looks.values()].map((look) => look.dueMs))
      this.#pause = new AbortController()
      // Also ended by a claim that is lost meanwhile, which is due at once.
      await backgroundClock.sleep(
        Math.max(0, dueMs - backgroundClock.monotonicMs()),
        AbortSignal.any([signal, this.#pause.signal]),
      )
      if (!signal.aborted) await this.#lookOnce()
    }
    // In the turn of the last check, so that the next claim that is lost starts a new round.
    this.#looking = null
  }

  async #lookOnce(): Promise<void> {
    const nowMs = backgroundClock.monotonicMs()
    const claims = [...this.#looks].flatMap(([claim, { dueMs }]) => (dueMs <= nowMs ? [claim] : []))
    if (claims.length === 0) return
    try {
      const found = new Set(await this.#takeBack(claims))
      for (const claim of claims) {
        const count = (this.#looks.get(claim)?.count ?? 0) + 1
        const pauseMs = PAUSES_MS[count]
        if (found.has(claim) || pauseMs === undefined) this.#looks.delete(claim)
        else this.#looks.set(claim, { count, dueMs: nowMs + pauseMs })
      }
    } catch {
      // The worker has told that the store is away, and goes on telling it as long as it claims.
      for (const claim of claims) {
        this.#looks.set(claim, { count: this.#looks.get(claim)?.count ?? 0, dueMs: nowMs + RETRY_MS })
      }
    }
  }

  /** Ends the looks. What is not taken back by then comes back when its lease runs out. */
  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#looking === null) return
    const over = new AbortController()
    await Promise.race([this.#looking, backgroundClock.sleep(CLOSE_MS, over.signal)])
    over.abort()
  }
}

/** The other codes of a store say that nothing was sent, or that it was refused. */
function isInDoubt(error: unknown): boolean {
  return isMillraceError(error, 'ERR_STORAGE_FAILED', 'ERR_STORAGE_BUSY')
}
