/** Ids, tokens and revisions are made at random; a history that replays exactly has names in the order of their appearance. */
import type { Consumer, Engine } from '../../src/engine/engine.ts'
import type { Lease } from '../../src/engine/outcome.ts'
import type { Records } from '../../src/engine/records.ts'
import type { NewJob } from '../../src/job/job.ts'
import { replaced } from '../../src/testing/replaced.ts'

export class Names {
  readonly #names = new Map<string, string>()
  readonly #made = new Set<string>()
  readonly #leases = new Map<string, Lease>()
  readonly #counts = new Map<string, number>()

  /** The same for the same text; a name stays as it is. */
  of(text: string, kind: 'job' | 'token' | 'revision'): string {
    if (this.#made.has(text)) return text
    const known = this.#names.get(text)
    if (known !== undefined) return known
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    // Names of one kind sort by their age, as ids do.
    const name = `${kind}-${String(count).padStart(4, '0')}`
    this.#names.set(text, name)
    this.#made.add(name)
    return name
  }

  #job(job: NewJob): NewJob {
    const { id, after } = job
    return {
      ...job,
      id: this.of(id, 'job'),
      after: after === null ? null : { ...after, ids: after.ids.map((each) => this.of(each, 'job')) },
    }
  }

  /** An engine that is asked for jobs and revisions by their names. */
  asking(engine: Engine): Engine {
    const enqueue: Engine['enqueue'] = (jobs, transaction) =>
      engine.enqueue(
        jobs.map((job) => this.#job(job)),
        transaction,
      )
    const changes = new Map<PropertyKey, unknown>([['enqueue', enqueue]])
    const { records } = engine
    if (records !== undefined) {
      const save: Records['save'] = (kind, record, expected, options) => {
        const revision = this.of(record.revision, 'revision')
        const before = expected === null ? null : this.of(expected, 'revision')
        const jobs = options?.jobs?.map((job) => this.#job(job))
        return records.save(kind, { ...record, revision }, before, { ...options, ...(jobs !== undefined && { jobs }) })
      }
      changes.set('records', replaced(records, new Map<PropertyKey, unknown>([['save', save]])))
    }
    return replaced(engine, changes)
  }

  /** An engine that hands out leases whose tokens are names. */
  handing(engine: Engine): Engine {
    const consume: Engine['consume'] = async (subscription) => this.#consumer(await engine.consume(subscription))
    return replaced(engine, new Map<PropertyKey, unknown>([['consume', consume]]))
  }

  #consumer(consumer: Consumer): Consumer {
    const named = <Of extends { readonly lease: Lease }>(of: Of): Of => ({ ...of, lease: this.#lease(of.lease) })
    const calls: Pick<Consumer, 'claim' | 'renew' | 'settle' | 'report' | 'listen'> = {
      claim: async (request) => (await consumer.claim(request)).map((lease) => this.#lease(lease)),
      renew: async (leases, leaseMs) =>
        (
          await consumer.renew(
            leases.map((lease) => this.#given(lease)),
            leaseMs,
          )
        ).map(named),
      settle: async (settlements) =>
        (await consumer.settle(settlements.map(({ lease, outcome }) => ({ lease: this.#given(lease), outcome })))).map(
          named,
        ),
      report: (lease, progress) => consumer.report(this.#given(lease), progress),
      listen: ({ onLost, ...listener }) =>
        consumer.listen({ ...listener, ...(onLost !== undefined && { onLost: (lost) => onLost(named(lost)) }) }),
    }
    return replaced(consumer, new Map<PropertyKey, unknown>(Object.entries(calls)))
  }

  /** A lease as its holder sees it. */
  #lease(lease: Lease): Lease {
    const named = { ...lease, token: this.of(lease.token, 'token') }
    this.#leases.set(named.token, lease)
    return named
  }

  /** A lease as the engine gave it. */
  #given(lease: Lease): Lease {
    return this.#leases.get(lease.token) ?? lease
  }
}
