import type { Leadership, Term } from '../../engine/leadership.ts'
import type { Clock } from '../../time/clock.ts'
import type { MemoryStore } from './store.ts'

interface Held {
  readonly holder: string
  readonly number: number
  readonly leaseMs: number
  readonly untilMs: number
}

/** Who holds which office. Each method is one atomic step at the time it is given. */
export class Offices {
  readonly #held = new Map<string, Held>()
  /** An office that is free again remembers how often it has changed hands. */
  readonly #numbers = new Map<string, number>()

  campaign(office: string, holder: string, leaseMs: number, nowMs: number): Term {
    const before = this.#valid(office, nowMs)
    if (before !== null && before.holder !== holder) return toTerm(before, nowMs)
    const last = this.#held.get(office)
    const number = (this.#numbers.get(office) ?? 0) + (last?.holder === holder ? 0 : 1)
    const held = { holder, number, leaseMs, untilMs: nowMs + leaseMs }
    this.#numbers.set(office, number)
    this.#held.set(office, held)
    return toTerm(held, nowMs)
  }

  /** The clock was set by so much. */
  shift(ms: number): void {
    for (const [office, held] of this.#held) this.#held.set(office, { ...held, untilMs: held.untilMs + ms })
  }

  resign(office: string, holder: string): void {
    if (this.#held.get(office)?.holder === holder) this.#held.delete(office)
  }

  leader(office: string, nowMs: number): Term | null {
    const held = this.#valid(office, nowMs)
    return held === null ? null : toTerm(held, nowMs)
  }

  /** A term that ends later than its lease allows was begun before the clock was set back: nobody waits for that. */
  #valid(office: string, nowMs: number): Held | null {
    const held = this.#held.get(office)
    if (held === undefined || held.untilMs <= nowMs || held.untilMs > nowMs + held.leaseMs) return null
    return held
  }
}

function toTerm({ holder, number, untilMs }: Held, nowMs: number): Term {
  return { holder, number, leftMs: untilMs - nowMs }
}

export function createLeadership(open: () => MemoryStore, clock: Clock): Leadership {
  return {
    campaign: async (office, holder, leaseMs) => open().offices.campaign(office, holder, leaseMs, clock.nowMs()),
    resign: async (office, holder) => open().offices.resign(office, holder),
    leader: async (office) => open().offices.leader(office, clock.nowMs()),
  }
}
