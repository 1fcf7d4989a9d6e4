import { Gather } from '../../../engine/gather.ts'
import type { TopicLetter } from './letter.ts'
import { type IndexedLetter, LetterIndex } from './letter-index.ts'
import type { DeadLetterLog } from './log.ts'
import { dlqTopicOf } from './record.ts'
import { isOpen, type LetterState, type StateBook, type StateView } from './states.ts'
import { lettersOf } from './walk.ts'

export interface LookupParts {
  readonly log: DeadLetterLog
  readonly group: string
  /** The topics of jobs that concern the group. */
  topics(): Promise<readonly string[]>
}

/** A job's last death, if it is in one of these states. */
export interface Wanted {
  readonly id: string
  readonly from: readonly LetterState[]
}

export interface FoundLetter {
  readonly letter: TopicLetter
  readonly state: StateView
}

export interface Placed {
  readonly diedAtMs: number
  readonly jobId: string
}

const ITEMS_MAX = 500

/** Finds letters by the ids of their jobs. Who asks for many at once, one by one, has them looked up together. */
export class GroupLookup {
  readonly #parts: LookupParts
  readonly #index: LetterIndex
  readonly #finding: Gather<Wanted, FoundLetter | null>

  constructor(parts: LookupParts) {
    this.#parts = parts
    this.#index = new LetterIndex(parts.log, parts.group)
    this.#finding = new Gather((wanted) => this.#findNow(wanted), {
      ...{ flightsMax: 1, itemsMax: ITEMS_MAX, isWorthRepeating: () => false },
    })
  }

  /** In the order asked for. A job that was replayed may have died again: the last death is meant. */
  find(wanted: readonly Wanted[]): Promise<readonly (FoundLetter | null)[]> {
    return this.#finding.add(wanted)
  }

  async #findNow(wanted: readonly Wanted[]): Promise<readonly (FoundLetter | null)[]> {
    const { letters, book } = await this.look(await this.#parts.topics())
    const byJob = Map.groupBy(letters, ({ jobId }) => jobId)
    const found = wanted.map(({ id, from }) => {
      const deaths = (byJob.get(id) ?? []).filter(({ letter }) => from.includes(book.of(letter).state))
      return deaths.sort(newestFirst)[0] ?? null
    })
    const read = await this.read(found.filter((one) => one !== null))
    const byId = new Map(read.map((letter) => [letter.id, letter]))
    return found.map((one) => {
      const letter = one === null ? undefined : byId.get(one.letter)
      return letter === undefined ? null : { letter, state: book.of(letter.id) }
    })
  }

  /** All letters of these topics of jobs, and their states. */
  async look(
    topics: readonly string[],
  ): Promise<{ readonly letters: readonly IndexedLetter[]; readonly book: StateBook }> {
    const { found, book } = await this.#lookAt(topics)
    return { letters: [...found.values()].flat(), book }
  }

  /** By topic of jobs: how many have died in all, and how many of those nobody has decided about. */
  async tally(
    topics: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly died: number; readonly dead: number }>> {
    const { found, book } = await this.#lookAt(topics)
    return new Map(
      topics.map((topic) => {
        const letters = found.get(dlqTopicOf(topic)) ?? []
        return [topic, { died: letters.length, dead: letters.filter(({ letter }) => isOpen(book.of(letter))).length }]
      }),
    )
  }

  async #lookAt(topics: readonly string[]) {
    const [found, book] = await Promise.all([this.#index.of(topics.map(dlqTopicOf)), this.#parts.log.states()])
    return { found, book }
  }

  read(letters: readonly IndexedLetter[]): Promise<readonly TopicLetter[]> {
    return lettersOf(
      this.#parts.log,
      letters.map(({ at }) => at),
    )
  }
}

export function newestFirst(a: Placed, b: Placed): number {
  if (a.diedAtMs !== b.diedAtMs) return b.diedAtMs - a.diedAtMs
  if (a.jobId === b.jobId) return 0
  return a.jobId < b.jobId ? 1 : -1
}
