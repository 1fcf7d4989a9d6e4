import assert from 'node:assert/strict'
import { openDesk } from '../../../src/desk/desk.ts'
import { lookupOf } from '../../../src/engine/capability-checks.ts'
import { searchJobs } from '../../../src/engine/search-jobs.ts'
import { Redaction } from '../../../src/job/redaction.ts'
import { parseSearch } from '../../../src/job/search.ts'
import { monotonicFactory } from '../../../src/job/ulid.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import type { CaseFile } from '../../case.ts'
import { deadLetters, inspection, looking, need } from '../../needs.ts'
import { complete, dead, type Stage } from '../../stage.ts'

const redaction = new Redaction([])

async function found(stage: Stage, text: string): Promise<readonly string[]> {
  const page = { limit: 100, clock: systemClock, redaction }
  const { items, next } = await searchJobs(lookupOf(stage.engine), parseSearch(text, stage.nowMs), page)
  assert.equal(next, null, `'${text}' has looked at all jobs`)
  return items.map(({ id }) => id)
}

/** All pages of a search, each of which ends after one step because its time is over. */
async function paged(stage: Stage, text: string, limit: number): Promise<readonly string[]> {
  let atMs = 0
  const hasty: Clock = { ...systemClock, monotonicMs: () => (atMs += 1_000) }
  const ids: string[] = []
  let before: string | undefined
  for (let pages = 0; pages < 200; pages += 1) {
    const page = { limit, before, clock: hasty, redaction }
    const { items, next } = await searchJobs(lookupOf(stage.engine), parseSearch(text, stage.nowMs), page)
    ids.push(...items.map(({ id }) => id))
    if (next === null) return ids
    before = next
  }
  throw new Error(`'${text}' does not come to an end`)
}

const tagged = (...tags: readonly string[]) => ({ options: { tags } })

export const searching: CaseFile = {
  level: 'port',
  concept: 'Searching jobs',
  cases: [
    {
      name: 'a search finds jobs by id, type, tenant, tag, payload and words, alone and combined',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
        const payload = '{"customer":{"id":42,"name":"Ann \\"A\\" Lee"},"to":["x","y"]}'
        const one = await stage.put({ type: a, payload, ...tagged('import-7', 'eu'), tenant: { orgId: 'acme' } })
        const two = await stage.put({ type: a, ...tagged('import-7'), tenant: { orgId: 'acme', workspaceId: 'w' } })
        const three = await stage.put({ type: b, payload: '{"customer":{"id":7}}' })
        const all = [three.id, two.id, one.id]
        const expected: Readonly<Record<string, readonly string[]>> = {
          '': all,
          [`id:${two.id}`]: [two.id],
          [`id:${two.id} type:${b}`]: [],
          [three.id]: [three.id],
          [`type:${a}`]: [two.id, one.id],
          'tenant:acme': [two.id, one.id],
          'tenant:acme/w': [two.id],
          'tenant:other': [],
          'tag:import-7': [two.id, one.id],
          'tag:import-7 tag:eu': [one.id],
          'tag:import': [],
          'payload.customer.id:42': [one.id],
          'payload.customer.name:"Ann \\"A\\" Lee"': [one.id],
          'payload.to:y': [one.id],
          'payload.customer.id:4': [],
          IMPORT: [two.id, one.id],
          ACME: [two.id, one.id],
          [`${b} ${three.id}`]: [three.id],
          [`type:${a} tag:import-7 tenant:acme eu payload.customer.id:42`]: [one.id],
          'since:1d': all,
          'until:1d': [],
          'tag:import-7 since:1d until:2030-01-01T00:00Z': stage.nowMs < Date.UTC(2030) ? [two.id, one.id] : [],
        }
        for (const [text, ids] of Object.entries(expected)) assert.deepEqual(await found(stage, text), ids, text)
      },
    },
    {
      name: 'a search finds jobs by state, key, latest key and error, alone and combined',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
        const done = await stage.put({ type: a, key: 'order-1' })
        const died = await stage.put({ type: a, latest: { key: 'doc-1', seq: null } })
        const consumer = await stage.consume({ types: [a] })
        await stage.settle(consumer, await stage.one(consumer), complete)
        await stage.settle(consumer, await stage.one(consumer), dead)
        const again = await stage.put({ type: a, key: 'order-1' })
        const other = await stage.put({ type: b })
        const expected: Readonly<Record<string, readonly string[]>> = {
          'state:completed': [done.id],
          'state:dead': [died.id],
          'state:cancelled': [],
          'state:queued': [other.id, again.id],
          [`state:queued type:${a}`]: [again.id],
          'key:order-1': [again.id, done.id],
          'key:order-1 state:completed': [done.id],
          'key:doc-1': [died.id],
          'key:order': [],
          'error:boom': [died.id],
          'error:e_BOOM error:boom': [died.id],
          [`error:boom type:${b}`]: [],
          'error:boom state:completed': [],
          'order-1': [again.id, done.id],
          'boom since:1d': [died.id],
        }
        for (const [text, ids] of Object.entries(expected)) assert.deepEqual(await found(stage, text), ids, text)
      },
    },
    {
      name: 'a search by time finds the jobs that were enqueued then',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        // Ids of this process never go back, and other cases have set the clock.
        const newId = monotonicFactory()
        const first = await stage.put({ id: newId(stage.nowMs), ...tagged('t') })
        await stage.harness.advance(50)
        const second = await stage.put({ id: newId(stage.nowMs), ...tagged('t') })
        const [one, two] = await lookupOf(stage.engine).find([first.id, second.id])
        assert.ok(one && two && one.createdAtMs < two.createdAtMs)
        const iso = new Date(two.createdAtMs).toISOString()
        for (const more of ['', ' tag:t', ` type:${stage.type}`]) {
          assert.deepEqual(await found(stage, `since:${iso}${more}`), [second.id], more)
          assert.deepEqual(await found(stage, `until:${iso}${more}`), [first.id], more)
        }
      },
    },
    {
      name: 'the pages of a bounded search leave out no match and repeat none',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        const jobs = stage.jobs(24).map((job, n) => ({
          ...job,
          payload: JSON.stringify({ n: n % 3 }),
          options: { tags: n % 2 === 0 ? ['even', 'all'] : ['all'] },
          tenant: n % 4 === 0 ? { orgId: 'acme' } : null,
        }))
        await stage.engine.enqueue(jobs)
        const ids = (fits: (n: number) => boolean) => jobs.flatMap(({ id }, n) => (fits(n) ? [id] : [])).reverse()
        for (const limit of [1, 5]) {
          assert.deepEqual(
            await paged(stage, 'payload.n:1', limit),
            ids((n) => n % 3 === 1),
          )
          assert.deepEqual(
            await paged(stage, 'tag:even', limit),
            ids((n) => n % 2 === 0),
          )
          assert.deepEqual(
            await paged(stage, 'tag:all payload.n:0', limit),
            ids((n) => n % 3 === 0),
          )
          assert.deepEqual(
            await paged(stage, 'tenant:acme payload.n:2', limit),
            ids((n) => n % 4 === 0 && n % 3 === 2),
          )
          assert.deepEqual(
            await paged(stage, `type:${stage.type} EVEN since:1d`, limit),
            ids((n) => n % 2 === 0),
          )
        }
      },
    },
    {
      name: 'dead letters are found by a search, and an act on a search acts on these alone',
      guarantees: ['I1', 'I9'],
      ...need(deadLetters),
      async run(stage) {
        const one = await stage.put(tagged('import-7'))
        const other = await stage.put({ payload: '{"m":1}' })
        const consumer = await stage.consume()
        for (let n = 0; n < 2; n += 1) await stage.settle(consumer, await stage.one(consumer), dead)
        const desk = openDesk({ engine: stage.engine }, { clock: stage.harness.clock })
        const ids = async (search: string) => (await desk.list({ search })).map(({ job }) => job.id)
        assert.deepEqual(await ids('tag:import-7 error:boom state:dead since:1d'), [one.id])
        assert.deepEqual(await ids('payload.m:1'), [other.id])
        assert.deepEqual(await ids('until:1d'), [])
        const { done } = await desk.discard({ search: 'tag:import-7 since:1d' }, { who: 'suite', reason: 'test' })
        assert.deepEqual([done, await ids('')], [1, [other.id]])
      },
    },
  ],
}
