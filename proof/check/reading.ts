/** Reads a history once and puts each entry where the rules look for it. */
import type { Answer, AskedJob, AskedOutcome, Call, Entry, Stamp } from '../history/entry.ts'
import { certainty, doneOf, isAnswer, leaseName, receiptOf, strangerName } from './answers.ts'
import type { Act, Ask, Asked, Claim, Done, JobStory, RecordChange, Start, Stray, Subscribed } from './evidence.ts'
import { Happenings } from './happenings.ts'

type Closed = Asked & { readonly number: number }

export class Reading {
  readonly jobs = new Map<string, JobStory>()
  readonly claims: Claim[] = []
  readonly strays: Stray[] = []
  readonly records: RecordChange[] = []
  readonly sweeps: Asked<'sweep'>[] = []
  readonly happenings = new Happenings()
  unknownCalls = 0
  readonly #open = new Map<string, Map<number, Closed>>()
  readonly #claims = new Map<Closed, Claim>()
  readonly #starts = new Map<string, Start>()
  readonly #subscriptions = new Map<string, Subscribed>()
  readonly #asks: Ask[] = []
  /** Where the jobs of other programs stand among them. */
  readonly #foreignAsks = new Map<string, number>()
  #batches = 0

  take(entry: Entry): void {
    if (!('call' in entry)) this.#happen(entry)
    else if (isAnswer(entry)) this.#answer(entry)
    else this.#ask(entry)
  }

  #happen(entry: Exclude<Entry, { readonly call: number }>): void {
    switch (entry.what) {
      case 'begin':
      case 'end':
      case 'aborted':
      case 'lost': {
        const start = this.#starts.get(leaseName(entry))
        const isBegin = entry.what === 'begin'
        if (isBegin && start?.beginMs !== null) {
          this.strays.push({ id: entry.id, by: entry.by, what: start === undefined ? 'began' : 'began-again' })
        }
        if (start === undefined) return
        if (isBegin) start.beginMs = entry.atMs
        else if (entry.what === 'end') start.endMs = entry.atMs
        else if (entry.what === 'lost') start.lostMs ??= entry.atMs
        else start.aborted = { atMs: entry.atMs, code: entry.code }
        return
      }
      case 'foreign':
        this.#foreign(entry)
        return
      default:
        this.happenings.take(entry)
    }
  }

  /** Written before the program is asked, and once more when it has said that the job is stored. */
  #foreign(entry: Extract<Entry, { readonly what: 'foreign' }>): void {
    const { job, isStored } = entry
    const name = `${job.id} ${strangerName(job)}`
    const asked = this.#foreignAsks.get(name) ?? -1
    const before = this.#asks[asked]
    if (isStored === true && before !== undefined) {
      this.#asks[asked] = { ...before, status: 'enqueued', receiptId: job.id, answeredMs: entry.atMs }
      return
    }
    this.#foreignAsks.set(name, this.#asks.length)
    this.#batches += 1
    this.#store(entry, job, { from: 'foreign', transaction: null, answered: isStored === true ? entry : null })
  }

  #ask(entry: Extract<Entry, { readonly call: number }> & Call): void {
    const { atMs, wallMs, by, call: number } = entry
    const asked: Closed = { atMs, wallMs, by, call: entry, number, answer: null }
    const own = this.#open.get(by) ?? new Map<number, Closed>()
    this.#open.set(by, own)
    own.set(number, asked)
    if (entry.what === 'claim') this.#claims.set(asked, this.#claim(entry, entry))
    if (entry.what === 'consume' && entry.types !== 'every') {
      const types = new Map(
        entry.types.map(({ type, leaseMs, limit = null, slots = null }) => [type, { leaseMs, limit, slots }]),
      )
      this.#subscriptions.set(`${by}\n${entry.worker}`, { types, ageingMs: entry.ageingMs ?? null })
    }
  }

  #claim({ atMs, wallMs, by }: Stamp, call: Extract<Call, { readonly what: 'claim' }>): Claim {
    const { worker, max, waitMs, from: source, perType = {}, paused = [] } = call
    const subscription = source === 'expired' ? null : (this.#subscriptions.get(`${by}\n${worker}`) ?? null)
    const given = { givenMs: null, starts: null, isGivenUp: false }
    const claim = { atMs, wallMs, by, worker, max, waitMs, source, perType, paused, subscription, ...given }
    this.claims.push(claim)
    return claim
  }

  #answer(entry: Stamp & Answer & { readonly call: number }): void {
    const own = this.#open.get(entry.by)
    const asked = own?.get(entry.call)
    if (asked === undefined) return
    own?.delete(entry.call)
    asked.answer = entry
    this.#close(asked)
  }

  /** Calls without an answer are closed too. Only now are the ends of all transactions known. */
  finish(): void {
    for (const own of this.#open.values()) for (const asked of own.values()) this.#close(asked)
    const strangers = this.#strangers()
    for (const ask of this.#asks) {
      if (ask.job.id !== '') this.#keep(ask)
      else {
        const name = strangerName(ask.job)
        // A program that repeats what was not answered stores a job twice.
        for (const id of strangers.get(name) ?? [name]) this.#keep({ ...ask, job: { ...ask.job, id } })
      }
    }
  }

  /**
   * The ids of jobs that were started and never asked for under their id, by type and payload. A store that numbers its
   * jobs begins again when it was emptied, and then gives an id to a second job.
   */
  #strangers(): ReadonlyMap<string, readonly string[]> {
    if (!this.#asks.some(({ job }) => job.id === '')) return new Map()
    const known = new Set(this.#asks.map(({ job }) => job.id))
    const starts = [...this.jobs.values()].flatMap((story) => (known.has(story.id) ? [] : story.starts))
    const byName = Map.groupBy(starts, ({ lease }) => strangerName(lease))
    return new Map([...byName].map(([name, own]) => [name, [...new Set(own.map(({ lease }) => lease.id))]]))
  }

  #close(asked: Closed): void {
    const { call } = asked
    if (asked.answer === null || (asked.answer.what === 'failed' && !asked.answer.isRefusal)) this.unknownCalls += 1
    switch (call.what) {
      case 'enqueue':
        this.#enqueued(asked, call.jobs, 'enqueue', call.transaction ?? null)
        return
      case 'claim':
        this.#claimed(asked)
        return
      case 'settle':
        this.#settled(asked, call.outcomes)
        return
      case 'report':
        this.#reported(asked, leaseName(call))
        return
      case 'cancel':
      case 'desk':
        this.#acted(asked, call)
        return
      case 'save':
        this.#saved(asked, call)
        this.#enqueued(asked, call.jobs, 'schedule', null)
        return
      case 'remove':
        for (const name of call.names) {
          const removal = { kind: call.kind, name, revision: null, expected: null, body: null, jobs: [] }
          this.#change(
            asked,
            removal,
            doneOf(asked, (answer) => answer.what === 'removed'),
          )
        }
        return
      case 'sweep':
        this.sweeps.push({ ...asked, call })
        return
      case 'consume':
      case 'leave':
      case 'close':
        return
      default:
        call satisfies never
    }
  }

  #enqueued(asked: Closed, jobs: readonly AskedJob[], from: Ask['from'], transaction: string | null): void {
    this.#batches += 1
    const { answer } = asked
    jobs.forEach((job, index) => {
      this.#store(asked, job, { from, transaction, answered: answer, index })
    })
  }

  #store(
    { atMs, wallMs, by }: Stamp,
    job: AskedJob,
    told: {
      readonly from: Ask['from']
      readonly transaction: string | null
      readonly answered: Stamp | (Stamp & Answer) | null
      readonly index?: number
    },
  ): void {
    const { from, transaction, answered, index = 0 } = told
    const { status, receiptId } = receiptOf(job, from, answered, index)
    const answeredMs = status === 'unknown' ? null : (answered?.atMs ?? null)
    this.#asks.push({ atMs, wallMs, by, job, batch: this.#batches, from, transaction, answeredMs, status, receiptId })
  }

  /** Only now is known how transactions ended. */
  #keep(asked: Ask): void {
    const ask = this.happenings.withTransaction(asked)
    const story = this.#story(ask.job.id)
    story.asks.push(ask)
    const rank = certainty(ask)
    if (rank > 0 && (story.ask === null || rank > certainty(story.ask))) story.ask = ask
  }

  #story(id: string): JobStory {
    const known = this.jobs.get(id)
    if (known !== undefined) return known
    const story: JobStory = { id, ask: null, asks: [], starts: [], acts: [] }
    this.jobs.set(id, story)
    return story
  }

  #claimed(asked: Closed): void {
    const claim = this.#claims.get(asked)
    this.#claims.delete(asked)
    if (claim === undefined || asked.answer?.what !== 'claimed') return
    claim.givenMs = asked.answer.atMs
    claim.isGivenUp = asked.answer.isGivenUp === true
    claim.starts = asked.answer.leases.map((lease) => {
      const blank = { beginMs: null, endMs: null, lostMs: null, aborted: null }
      const start: Start = { lease, by: asked.by, claim, ...blank, settles: [], reports: [] }
      this.#story(lease.id).starts.push(start)
      // A token that was given twice is judged by its rule; what follows belongs to the last.
      this.#starts.set(leaseName(lease), start)
      return start
    })
  }

  #settled(asked: Closed, outcomes: readonly AskedOutcome[]): void {
    const { answer, atMs: askedMs, wallMs } = asked
    const reasons = new Map<string, string[]>()
    if (answer?.what === 'settled') {
      for (const refused of answer.refused) {
        const name = leaseName(refused)
        reasons.set(name, [...(reasons.get(name) ?? []), refused.reason])
      }
    }
    // A lease that stands twice in a batch and is refused once was settled by the first.
    for (const outcome of outcomes.toReversed()) {
      const reason = reasons.get(leaseName(outcome))?.pop() ?? null
      const done = reason === null ? doneOf(asked, ({ what }) => what === 'settled') : 'no'
      const settle = { outcome, askedMs, wallMs, answeredMs: answer?.atMs ?? null, done, reason }
      const start = this.#starts.get(leaseName(outcome))
      if (start !== undefined) start.settles.push(settle)
      else if (done === 'yes') this.strays.push({ id: outcome.id, by: asked.by, what: 'settled' })
    }
  }

  #reported({ answer, atMs: askedMs }: Closed, lease: string): void {
    const isHeld = answer?.what === 'reported' ? answer.isHeld : null
    this.#starts.get(lease)?.reports.push({ askedMs, answeredMs: answer?.atMs ?? null, isHeld })
  }

  #acted(asked: Closed, call: Extract<Call, { readonly what: 'cancel' | 'desk' }>): void {
    const { answer, atMs: askedMs, wallMs, by } = asked
    const about = { by, askedMs, wallMs, answeredMs: answer?.atMs ?? null }
    if (call.what === 'cancel') {
      const done = doneOf(asked, (told) => told.what === 'cancelled' && told.isDone)
      this.#story(call.id).acts.push({ ...about, kind: 'cancel', who: '', reason: '', edit: null, done })
      return
    }
    call.ids.forEach((id, index) => {
      const done = doneOf(asked, (told) => told.what === 'desk-done' && told.done[index] === true)
      const act: Act = { ...about, kind: call.act, who: call.who, reason: call.reason, edit: call.edit ?? null, done }
      this.#story(id).acts.push(act)
    })
  }

  #saved(asked: Closed, call: Extract<Call, { readonly what: 'save' }>): void {
    const { kind, name, revision, expected, body, jobs } = call
    const done = doneOf(asked, (answer) => answer.what === 'saved' && answer.receipts !== null)
    this.#change(asked, { kind, name, revision, expected, body, jobs }, done)
  }

  #change(
    { atMs: askedMs, wallMs, by, answer }: Closed,
    change: Pick<RecordChange, 'kind' | 'name' | 'revision' | 'expected' | 'body' | 'jobs'>,
    done: Done,
  ): void {
    this.records.push({ ...change, by, askedMs, wallMs, answeredMs: answer?.atMs ?? null, done })
  }
}
