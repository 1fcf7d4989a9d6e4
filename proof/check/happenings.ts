import type { Entry, Stamp } from '../history/entry.ts'
import type { ActiveFault, Ask, Done, Evidence, ProcessStory, Trouble } from './evidence.ts'
import { type Span, Spans } from './spans.ts'

/** How long after a fault was healed connections, leases and members may still suffer from it. */
const AFTERMATH_MS = 5_000
/** Where a fault that undoes what is recent does not say how recent. */
const RECENT_DEFAULT_MS = 1_000

type Happened = Extract<
  Entry,
  { readonly what: 'seen' | 'transaction' | 'process' | 'fault' | 'healed' | 'calm' | 'finished' }
>

/** What a history says beside calls and handlers: processes, faults, transactions. */
export class Happenings {
  readonly #faults = new Map<number, Stamp & Extract<Entry, { readonly what: 'fault' }>>()
  readonly #healed = new Map<number, number>()
  readonly #processes = new Map<string, ProcessStory>()
  readonly #transactions = new Map<string, { end: 'committing' | 'committed' | 'rolled-back'; atMs: number }>()
  readonly #seen: Evidence['seen'][number][] = []
  #calm: Evidence['calm'] = null
  #finishedMs: number | null = null

  take(entry: Happened): void {
    switch (entry.what) {
      case 'seen':
        this.#seen.push(entry)
        return
      case 'transaction':
        this.#transactions.set(entry.transaction, { end: entry.end, atMs: entry.atMs })
        return
      case 'process':
        this.#process(entry)
        return
      case 'fault':
        this.#faults.set(entry.fault, entry)
        return
      case 'healed':
        this.#healed.set(entry.fault, entry.atMs)
        return
      case 'calm':
        this.#calm = { atMs: entry.atMs, boundMs: entry.boundMs }
        return
      case 'finished':
        this.#finishedMs = entry.atMs
        return
      default:
        entry satisfies never
    }
  }

  #process(entry: Extract<Happened, { readonly what: 'process' }>): void {
    const { name, event, atMs, how, boundMs, concurrency } = entry
    const story = this.#processes.get(name) ?? {
      name,
      stoppingMs: null,
      boundMs: null,
      exitedMs: null,
      how: null,
      concurrency: null,
    }
    this.#processes.set(name, story)
    switch (event) {
      case 'started':
        story.concurrency = concurrency ?? story.concurrency
        return
      case 'stopping':
        story.stoppingMs ??= atMs
        story.boundMs ??= boundMs ?? null
        return
      case 'exited':
        story.exitedMs = atMs
        story.how = how ?? null
        return
      default:
        event satisfies never
    }
  }

  /** `committing` is written before the commit is asked for, so a transaction without any entry never was committed. */
  #endOf(transaction: string): Done {
    const ended = this.#transactions.get(transaction)
    if (ended === undefined || ended.end === 'rolled-back') return 'no'
    return ended.end === 'committed' ? 'yes' : 'unknown'
  }

  /** The receipt of a job within a transaction counts once that was committed. */
  withTransaction(ask: Ask): Ask {
    if (ask.transaction === null || ask.status === 'refused') return ask
    switch (this.#endOf(ask.transaction)) {
      case 'no':
        return { ...ask, status: 'rolled-back', answeredMs: null }
      case 'unknown':
        return { ...ask, status: ask.status === 'duplicate' || ask.status === 'stale' ? ask.status : 'unknown' }
      default:
        return { ...ask, answeredMs: this.#transactions.get(ask.transaction)?.atMs ?? ask.answeredMs }
    }
  }

  facts(): Pick<Evidence, 'seen' | 'trouble' | 'processes' | 'calm' | 'finishedMs'> {
    const faults = [...this.#faults.values()].map(
      (fault): ActiveFault => ({ ...fault, healedMs: this.#healed.get(fault.fault) ?? Number.POSITIVE_INFINITY }),
    )
    return {
      seen: this.#seen,
      trouble: troubleOf(faults.filter(({ isRequest }) => isRequest !== true)),
      processes: this.#processes,
      calm: this.#calm,
      finishedMs: this.#finishedMs,
    }
  }

  faultsByKind(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { nemesis } of this.#faults.values()) counts[nemesis] = (counts[nemesis] ?? 0) + 1
    return counts
  }
}

function troubleOf(faults: readonly ActiveFault[]): Trouble {
  const active = ({ atMs, healedMs }: ActiveFault): Span => ({ fromMs: atMs, toMs: healedMs + AFTERMATH_MS })
  const allowing = (allowance: NonNullable<ActiveFault['allows']>[number]): ActiveFault[] =>
    faults.filter(({ allows }) => allows?.includes(allowance) === true)
  const ofStore = faults.filter(({ target }) => target === null).map(active)
  const byProcess = new Map<string, Spans>()
  const byType = new Map<string, Spans>()
  const isAbout =
    (type: string) =>
    ({ types }: ActiveFault): boolean =>
      types?.includes(type) ?? true
  const undoing = [...allowing('lose-all'), ...allowing('lose-recent')]
  const store = new Spans(ofStore)
  return {
    any: new Spans(faults.map(active)),
    store,
    undo(type) {
      const known = byType.get(type)
      if (known !== undefined) return known
      const spans = new Spans(undoing.filter(isAbout(type)).map(undoneBy))
      byType.set(type, spans)
      return spans
    },
    readAgain: (type) => new Spans(allowing('read-again').filter(isAbout(type)).map(active)),
    wallClock: new Spans(allowing('wall-clock').map(active)),
    ofProcess(name) {
      const known = byProcess.get(name)
      if (known !== undefined) return known
      const spans = new Spans([...ofStore, ...faults.filter(({ target }) => target === name).map(active)])
      byProcess.set(name, spans)
      return spans
    },
  }
}

/** When it was answered what the fault may have undone. */
function undoneBy({ allows, atMs, healedMs, recentMs = RECENT_DEFAULT_MS, undoesForMs }: ActiveFault): Span {
  const fromMs = allows?.includes('lose-all') === true ? Number.NEGATIVE_INFINITY : atMs - recentMs
  return { fromMs, toMs: undoesForMs === undefined ? healedMs : atMs + undoesForMs }
}
