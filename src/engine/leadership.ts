import { randomUUID } from 'node:crypto'
import { EngineError } from '../errors.ts'
import { bodyFields, type Records, type StoredRecord } from './records.ts'

/** Who leads, and for how long. The store measures the time, so no process's clock decides. */
export interface Term {
  readonly holder: string
  /** Grows with every change of leader. */
  readonly number: number
  /** How long it lasts unless it is renewed. */
  readonly leftMs: number
}

/** Another process may change the record between a read and a save, but hardly this often in a row. */
const TRIES = 10

/**
 * One process at a time leads an election. It saves work and decides nothing: each act of the leader is fenced by itself,
 * because a leader that was paused believes that it leads until it looks.
 */
export class Leadership {
  readonly #records: Records
  /** The last term that was saved here, by election. While nobody else has saved one, it is renewed without a read. */
  readonly #saved = new Map<string, SavedTerm>()

  constructor(records: Records) {
    this.#records = records
  }

  /** Takes the lead if it is free or has run out, or renews it for `holder`. Returns the term that is valid now. */
  async campaign(election: string, holder: string, leaseMs: number): Promise<Term> {
    const saved = this.#saved.get(election)
    if (saved?.holder === holder) {
      const { number, revision } = saved
      if (await this.#save(election, revision, { holder, number, leaseMs })) return { holder, number, leftMs: leaseMs }
    }
    for (let tries = 0; tries < TRIES; tries += 1) {
      const record = await this.#find(election)
      const before = record === null ? null : readTerm(record)
      // Those who wait only read, so they hold up nobody's writes.
      if (before?.isValid && before.holder !== holder) return toTerm(before)
      const last = before ?? { holder: null, number: 0 }
      const number = last.holder === holder ? last.number : last.number + 1
      if (await this.#save(election, revisionOf(record), { holder, number, leaseMs }))
        return { holder, number, leftMs: leaseMs }
    }
    throw new EngineError('ERR_STORAGE_BUSY', `the leader of '${election}' changes too fast; try again`)
  }

  /** Lets another process lead at once, if `holder` leads now. The number stays, so that it goes on growing. */
  async resign(election: string, holder: string): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const record = await this.#find(election)
      const term = record === null ? null : readTerm(record)
      if (term?.holder !== holder) return
      if (await this.#save(election, revisionOf(record), { holder: null, number: term.number, leaseMs: 0 })) return
    }
  }

  /** Null if no process leads. */
  async leader(election: string): Promise<Term | null> {
    const record = await this.#find(election)
    const term = record === null ? null : readTerm(record)
    return term?.isValid ? toTerm(term) : null
  }

  async #find(election: string): Promise<StoredRecord | null> {
    return (await this.#records.list('leader')).find(({ name }) => name === election) ?? null
  }

  async #save(name: string, expected: string | null, body: NewTerm): Promise<boolean> {
    const revision = randomUUID()
    // An answer that is lost leaves open which revision is stored, so the next campaign reads.
    this.#saved.delete(name)
    const record = { name, revision, body: JSON.stringify(body) }
    const isSaved = (await this.#records.save('leader', record, expected, { ttlMs: body.leaseMs })) !== null
    if (isSaved) this.#saved.set(name, { holder: body.holder, number: body.number, revision })
    return isSaved
  }
}

interface NewTerm {
  readonly holder: string | null
  readonly number: number
  readonly leaseMs: number
}

interface SavedTerm {
  readonly holder: string | null
  readonly number: number
  readonly revision: string
}

function revisionOf(record: StoredRecord | null): string | null {
  return record?.revision ?? null
}

interface StoredTerm {
  readonly holder: string | null
  readonly number: number
  readonly leftMs: number
  readonly isValid: boolean
}

function readTerm({ body, leftMs }: StoredRecord): StoredTerm {
  const { holder, number, leaseMs } = bodyFields(body)
  const left = leftMs ?? 0
  return {
    holder: typeof holder === 'string' ? holder : null,
    number: Number(number) || 0,
    leftMs: left,
    // A term that lasts longer than its lease was begun before the store's clock was set back: nobody waits for that.
    isValid: typeof holder === 'string' && left > 0 && left <= Number(leaseMs),
  }
}

function toTerm({ holder, number, leftMs }: StoredTerm): Term {
  return { holder: holder ?? '', number, leftMs }
}
