import type { HealthAnswer, HealthWord } from '../../src/observe/health.ts'
import type { Found } from '../../src/observe/observed-mill.ts'
import { healthAnswer, type Ping, timePing } from '../../src/observe/readiness.ts'
import type { Clock } from '../../src/time/clock.ts'
import { formatDuration } from '../../src/time/duration.ts'
import { toIso } from '../../src/time/iso.ts'
import type { Database } from './database.ts'
import type { ReaperRun } from './service.ts'

/** A run that got no answer for so long does not go on by itself: every statement has a time limit below that. */
export const HANGING_MS_DEFAULT = 120_000

interface HealthParts {
  readonly database: Database
  /** It has a time limit of its own, since probes wait for it. */
  readonly ping: () => Promise<void>
  readonly clock: Clock
  /** Default: two minutes. Above what a statement may take. */
  readonly hangingMs?: number
}

interface LastRun extends ReaperRun {
  readonly endedAtMs: number
}

/**
 * What a supervisor asks of a running reaper. Alive: it does not hang, so a restart would not help. Ready: the database
 * answers and the last run succeeded. A database that is gone makes it not ready, never dead.
 */
export class ReaperHealth {
  readonly #database: Database
  readonly #sendPing: () => Promise<void>
  readonly #clock: Clock
  readonly #hangingMs: number
  #pinging: Promise<void> | null = null
  #isRunning = false
  #lastSignMs: number
  #last: LastRun | null = null
  #failedRuns = 0

  constructor({ database, ping, clock, hangingMs = HANGING_MS_DEFAULT }: HealthParts) {
    this.#database = database
    this.#sendPing = ping
    this.#clock = clock
    this.#hangingMs = hangingMs
    this.#lastSignMs = clock.monotonicMs()
  }

  /** The database for the reaper. Every answer, also an error, shows that the run goes on. */
  get watched(): Database {
    return {
      query: async (text, values) => {
        try {
          return await this.#database.query(text, values)
        } finally {
          this.#lastSignMs = this.#clock.monotonicMs()
        }
      },
    }
  }

  readonly onStarted = (): void => {
    this.#isRunning = true
    this.#lastSignMs = this.#clock.monotonicMs()
  }

  readonly onEnded = (run: ReaperRun): void => {
    this.#isRunning = false
    this.#failedRuns = run.error === null ? 0 : this.#failedRuns + 1
    this.#last = { ...run, endedAtMs: this.#clock.nowMs() }
  }

  /** By path. */
  readonly probes: Readonly<Record<string, () => Promise<HealthAnswer>>> = {
    '/health': async () => this.#answer(await this.#ping()),
    '/health/ready': async () => this.#answer(await this.#ping()),
    '/health/live': async () => {
      const hanging = this.#hanging()
      return healthAnswer({ status: wordOf(hanging), reasons: reasonsOf({ runs: hanging }) })
    },
  }

  #answer(ping: Found<Ping>): HealthAnswer {
    const runs = this.#hanging() ?? this.#failing()
    const database = ping.ok ? null : `the database does not answer: ${ping.error}`
    const checks = {
      database: { status: wordOf(database), ...(ping.ok && { latency: ping.value.latencyMs }) },
      runs: { status: wordOf(runs), isRunning: this.#isRunning, failedRuns: this.#failedRuns, last: this.#shownLast() },
    }
    const reasons = reasonsOf({ database, runs })
    return healthAnswer({ status: reasons.length === 0 ? 'healthy' : 'unhealthy', reasons, checks })
  }

  #hanging(): string | null {
    const silentMs = this.#clock.monotonicMs() - this.#lastSignMs
    if (!this.#isRunning || silentMs <= this.#hangingMs) return null
    return `a run has had no answer of the database for ${formatDuration(silentMs)}; restart the reaper`
  }

  #failing(): string | null {
    if (this.#last === null) return 'the first run has not ended yet'
    if (this.#last.error === null) return null
    const many = this.#failedRuns === 1 ? 'the last run' : `the last ${this.#failedRuns} runs`
    return `${many} failed: ${this.#last.error}`
  }

  #shownLast() {
    if (this.#last === null) return null
    const { endedAtMs, durationMs, result } = this.#last
    return {
      endedAt: toIso(endedAtMs),
      durationMs: Math.round(durationMs),
      requeued: result?.requeuedIds.length ?? null,
      failed: result?.failedIds.length ?? null,
    }
  }

  /** Probes share one statement, so that they cannot use up the connections while the database does not answer. */
  #ping(): Promise<Found<Ping>> {
    return timePing(this.#clock, 'a ping of the database', () => {
      this.#pinging ??= this.#sendPing().finally(() => {
        this.#pinging = null
      })
      return this.#pinging
    })
  }
}

function wordOf(reason: string | null): HealthWord {
  return reason === null ? 'healthy' : 'unhealthy'
}

function reasonsOf(found: Readonly<Record<string, string | null>>) {
  return Object.entries(found).flatMap(([check, text]) => (text === null ? [] : [{ check, text }]))
}
