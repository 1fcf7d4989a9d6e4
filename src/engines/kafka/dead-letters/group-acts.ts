import type { By, PayloadEdit } from '../../../engine/dead-letters.ts'
import { Gather } from '../../../engine/gather.ts'
import { isMillraceError } from '../../../errors.ts'
import type { Clock } from '../../../time/clock.ts'
import type { GroupLookup } from './group-lookup.ts'
import type { TopicLetter } from './letter.ts'
import type { DeadLetterLog } from './log.ts'
import type { NewRecord } from './record.ts'
import { editedReplay, throwIfGone } from './replay.ts'
import { type Resolving, resolveLetters } from './resolve.ts'

/** What is to be done to one job's letter. */
export interface JobAct extends Pick<Resolving, 'from' | 'to' | 'action'> {
  readonly id: string
  readonly by: By
  readonly edit?: PayloadEdit
}

interface LetterAct extends JobAct {
  readonly letter: TopicLetter
  /** What goes back to its topic, for a replay. */
  readonly record: NewRecord | null
}

const ITEMS_MAX = 100

/** Acts of one group's operators. Those that come together are claimed, written and resolved together. */
export class GroupActs {
  readonly #parts: { readonly log: DeadLetterLog; readonly clock: Clock; readonly prefix: string }
  readonly #lookup: GroupLookup
  readonly #acting: Gather<JobAct, boolean>

  constructor(
    parts: { readonly log: DeadLetterLog; readonly clock: Clock; readonly prefix: string },
    lookup: GroupLookup,
  ) {
    this.#parts = parts
    this.#lookup = lookup
    this.#acting = new Gather((acts) => this.#actNow(acts), {
      ...{ flightsMax: 1, itemsMax: ITEMS_MAX },
      // Found out before anything was claimed: whose topic is there need not suffer for the other.
      isWorthRepeating: (error) => isMillraceError(error, 'ERR_SCHEMA_MISSING'),
    })
  }

  /** Whether each was done, in their order. */
  act(acts: readonly JobAct[]): Promise<readonly boolean[]> {
    return this.#acting.add(acts)
  }

  async #actNow(acts: readonly JobAct[]): Promise<readonly boolean[]> {
    const found = await this.#lookup.find(acts)
    const chosen = new Map<JobAct, LetterAct>()
    const taken = new Set<string>()
    for (const [index, act] of acts.entries()) {
      const letter = found[index]?.letter
      const record = letter === undefined || act.action !== 'replay' ? null : editedReplay(letter, act.edit)
      // Of two acts on one letter the first has it; what nobody knows the origin of cannot go back.
      if (letter === undefined || taken.has(letter.id) || (act.action === 'replay' && record === null)) continue
      taken.add(letter.id)
      chosen.set(act, { ...act, letter, record })
    }
    await throwIfGone(this.#parts.log, recordsOf([...chosen.values()]))
    const done = new Set<TopicLetter>()
    const alike = Map.groupBy(chosen.values(), ({ action, by }) => JSON.stringify([action, by]))
    for (const some of alike.values()) for (const letter of await this.#resolve(some)) done.add(letter)
    return acts.map((act) => {
      const one = chosen.get(act)
      return one !== undefined && done.has(one.letter)
    })
  }

  async #resolve(acts: readonly LetterAct[]): Promise<Iterable<TopicLetter>> {
    const [first] = acts
    if (first === undefined) return []
    const { from, to, action, by } = first
    const { held } = await resolveLetters(
      this.#parts,
      acts.map(({ letter }) => letter),
      {
        ...{ from, to, action, by },
        edits: new Map(acts.flatMap(({ letter, edit }) => (edit === undefined ? [] : [[letter, edit]]))),
        perform: async (some) => {
          const records = recordsOf(acts.filter(({ letter }) => some.includes(letter)))
          if (records.length > 0) await this.#parts.log.produce(records)
        },
      },
    )
    return held
  }
}

function recordsOf(acts: readonly LetterAct[]): readonly NewRecord[] {
  return acts.flatMap(({ record }) => record ?? [])
}
