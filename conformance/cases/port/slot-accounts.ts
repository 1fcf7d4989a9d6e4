import assert from 'node:assert/strict'
import type { Consumer } from '../../../src/engine/engine.ts'
import type { Lease } from '../../../src/engine/outcome.ts'
import type { SharedSlots } from '../../../src/job/slots.ts'
import { slots } from '../../bounds.ts'
import type { Case, CaseFile } from '../../case.ts'
import { cancellation, deadLetters, latest, need, reaping, retention } from '../../needs.ts'
import { boom, complete, dead, first, release, retry, type Stage } from '../../stage.ts'

const MAX = 2
const by = { who: 'suite', reason: 'test' }
const tenant = { orgId: 'ann' }

/** A type with `MAX` slots, all of them taken, and jobs that wait for them. */
class FullType {
  readonly stage: Stage
  readonly consumer: Consumer
  readonly held: Lease[]

  constructor(stage: Stage, consumer: Consumer, held: readonly Lease[]) {
    this.stage = stage
    this.consumer = consumer
    this.held = [...held]
  }

  static async of(stage: Stage, kind: SharedSlots['by']): Promise<FullType> {
    const type = `${stage.type}-${kind ?? 'whole'}`
    await stage.engine.enqueue(stage.jobs(30, { type, tenant }))
    const consumer = await stage.consume({ types: [{ type, leaseMs: stage.leaseMs, slots: { max: MAX, by: kind } }] })
    const full = new FullType(stage, consumer, await stage.take(consumer, 10))
    assert.equal(full.held.length, MAX)
    return full
  }

  /** The lease that was claimed first. */
  get first(): Lease {
    return first(this.held)
  }

  /** Insists that exactly so many slots are free, and takes them again. `gone`: who gave them up. */
  async freed(count: number, gone: readonly Lease[], after: string): Promise<void> {
    this.held.splice(0, this.held.length, ...this.held.filter((lease) => !gone.includes(lease)))
    const taken = await this.stage.take(this.consumer, 10)
    assert.equal(taken.length, count, `${count} of ${MAX} slots should be free after ${after}`)
    this.held.push(...taken)
    await this.stage.none(this.consumer, `all slots are taken again after ${after}`)
  }
}

/** The same for slots of a type and of a tenant. */
function onBoth(run: (full: FullType, stage: Stage) => Promise<void>): Pick<Case, 'run'> {
  return {
    run: async (stage) => {
      for (const kind of [null, 'tenant'] as const) await run(await FullType.of(stage, kind), stage)
    },
  }
}

export const slotAccounts: CaseFile = {
  level: 'port',
  concept: 'Slots are neither lost nor doubled',
  cases: [
    {
      name: 'every outcome frees the slot of its job and no other, and a second settle frees none',
      guarantees: ['I3', 'I10'],
      ...need(slots),
      ...onBoth(async (full, stage) => {
        for (const outcome of [complete, retry(), release(), dead]) {
          const lease = full.first
          await stage.settle(full.consumer, lease, outcome)
          await full.freed(1, [lease], `a ${outcome.kind}`)
          await stage.refused(full.consumer, lease, complete)
          await full.freed(0, [], `a second settle behind a ${outcome.kind}`)
        }
      }),
    },
    {
      name: 'an expired lease keeps its slot until its job is back in the queue, and its late settle frees none',
      guarantees: ['I3', 'I6', 'I10'],
      ...need(slots),
      ...onBoth(async (full, stage) => {
        const lost = full.first
        if (stage.engine.capabilities.recovery === 'engine') await stage.recover(first(full.held.slice(1)))
        else {
          await stage.expire(first(full.held.slice(1)))
          await stage.none(full.consumer, 'the old holders may still be at work')
          const reaper = await stage.reaper()
          for (const lease of await takeExpired(stage, reaper)) await stage.settle(reaper, lease, retry())
        }
        await full.freed(MAX, [...full.held], 'both leases had expired')
        await stage.refused(full.consumer, lost, complete)
        await full.freed(0, [], 'a late settle')
      }),
    },
    {
      name: 'the reaper needs no slot to take over an expired job, and its settle frees the one of the dead holder',
      guarantees: ['I6', 'I10'],
      ...need(slots, reaping),
      ...onBoth(async (full, stage) => {
        const leases = [...full.held]
        await stage.expire(first(leases.slice(1)))
        const reaper = await stage.reaper()
        const taken = (await takeExpired(stage, reaper)).filter(({ job }) => job.type === full.first.job.type)
        assert.equal(taken.length, MAX)
        await stage.none(full.consumer, 'the reaper holds the jobs and their slots')
        await stage.settle(reaper, first(taken), dead)
        await full.freed(1, leases, 'the reaper gave up one job')
      }),
    },
    {
      name: 'a running job that is cancelled frees its slot once',
      guarantees: ['I3', 'I10'],
      ...need(slots, cancellation),
      ...onBoth(async (full, stage) => {
        const lease = full.first
        assert.equal(await stage.engine.controls?.cancel(lease.job.id, by), true)
        await full.freed(1, [lease], 'a cancellation')
        await stage.refused(full.consumer, lease, complete)
        assert.equal(await stage.engine.controls?.cancel(lease.job.id, by), false)
        await full.freed(0, [], 'its late settle')
      }),
    },
    {
      name: 'dead letters that are replayed, discarded, restored and purged take and free no slots',
      guarantees: ['I10'],
      ...need(slots, deadLetters),
      ...onBoth(async (full, stage) => {
        const letters = stage.engine.deadLetters
        assert.ok(letters)
        const ids: string[] = []
        for (let n = 0; n < 3; n += 1) {
          const lease = full.first
          await stage.settle(full.consumer, lease, dead)
          await full.freed(1, [lease], 'a death')
          ids.push(lease.job.id)
        }
        const [again, discarded, purged] = ids
        assert.ok(again && discarded && purged)
        await letters.requeue([again], by)
        await letters.discard([discarded], by)
        await letters.undiscard([discarded], by)
        await letters.remove([purged, discarded], by)
        await full.freed(0, [], 'acts on dead letters')
      }),
    },
    {
      name: 'a job that is removed with its settle frees its slot',
      guarantees: ['I10'],
      ...need(slots, retention),
      ...onBoth(async (full, stage) => {
        const [done, died] = full.held
        assert.ok(done && died)
        await stage.settle(full.consumer, done, { kind: 'complete', result: 'null', durationMs: 1, keep: 0 })
        await full.freed(1, [done], 'a completion that removes its job')
        await stage.settle(full.consumer, died, { kind: 'dead', error: boom, keep: 0 })
        await full.freed(1, [died], 'a death that removes its job')
      }),
    },
    {
      name: 'a running job that a newer version supersedes frees its slot, and the newer one needs one too',
      guarantees: ['I4', 'I10'],
      ...need(slots, latest),
      async run(stage) {
        const version = () => stage.job({ tenant, latest: { key: 'doc', seq: null } })
        await stage.engine.enqueue([version()])
        const consumer = await stage.consume({ slots: { max: 1, by: 'tenant' } })
        const old = await stage.one(consumer)
        const newer = version()
        await stage.engine.enqueue([newer, ...stage.jobs(2, { tenant })])
        await stage.none(consumer, 'the only slot is taken')
        await stage.settle(consumer, old, retry())
        const next = await stage.one(consumer)
        await stage.none(consumer, 'the only slot is taken again')
        await stage.settle(consumer, next, complete)
        await stage.one(consumer)
      },
    },
  ],
}

async function takeExpired(stage: Stage, reaper: Consumer): Promise<readonly Lease[]> {
  return stage.take(reaper, 10, { from: 'expired' })
}
