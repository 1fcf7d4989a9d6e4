export interface RateLimit {
  readonly max: number
  readonly perMs: number
}

/**
 * When jobs of limited types were claimed. Every claim counts for the half-open window [claim, claim + perMs), also when the
 * job is released later: the limit is on starts.
 */
export class RateLimits {
  readonly #claims = new Map<string, { times: number[]; perMsMax: number }>()

  /** Claims of a type are remembered from the first limit on it. */
  watch(type: string, limit: RateLimit): void {
    const claims = this.#claims.get(type) ?? { times: [], perMsMax: 0 }
    claims.perMsMax = Math.max(claims.perMsMax, limit.perMs)
    this.#claims.set(type, claims)
  }

  count(type: string, nowMs: number): void {
    const claims = this.#claims.get(type)
    if (claims === undefined) return
    claims.times.push(nowMs)
    const oldestMs = claims.times[0]
    // Trimmed only after a whole window, so counting stays cheap.
    if (oldestMs !== undefined && oldestMs <= nowMs - 2 * claims.perMsMax) {
      claims.times = claims.times.filter((atMs) => atMs > nowMs - claims.perMsMax)
    }
  }

  /** The clock was set by this much. */
  shift(ms: number): void {
    for (const claims of this.#claims.values()) claims.times = claims.times.map((atMs) => atMs + ms)
  }

  /** How many more may be claimed now. */
  room(type: string, limit: RateLimit, nowMs: number): number {
    return Math.max(0, limit.max - this.#inWindow(type, limit, nowMs).length)
  }

  /** When the next claim is allowed: now, if there is room. */
  nextMs(type: string, limit: RateLimit, nowMs: number): number {
    const times = this.#inWindow(type, limit, nowMs)
    const leaving = times[times.length - limit.max]
    return leaving === undefined ? nowMs : leaving + limit.perMs
  }

  #inWindow(type: string, limit: RateLimit, nowMs: number): readonly number[] {
    const times = this.#claims.get(type)?.times ?? []
    const first = times.findIndex((atMs) => atMs > nowMs - limit.perMs)
    return first === -1 ? [] : times.slice(first)
  }
}
