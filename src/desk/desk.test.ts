import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ann, die, idsOf, rejects, start } from '../../test/fixtures/desk.ts'

describe('looking', () => {
  // A166 B126 B129
  test('lists newest first, by type, time, fingerprint and limit', async (t) => {
    const { clock, desk, bury } = await start(t)
    const first = await bury('bill', 'no invoice 1', { tenant: { orgId: 'acme' } })
    const second = await bury('erase')
    const middleMs = clock.nowMs()
    const third = await bury('bill', 'no invoice 2')
    assert.deepEqual(idsOf(await desk.list()), [third, second, first])
    assert.deepEqual(idsOf(await desk.list({ type: 'bill' })), [third, first])
    assert.deepEqual(idsOf(await desk.list({ sinceMs: middleMs })), [third])
    assert.deepEqual(idsOf(await desk.list({ beforeMs: middleMs })), [second, first])
    assert.deepEqual(idsOf(await desk.list({ limit: 2 })), [third, second])
    const [letter] = await desk.list({ type: 'bill', beforeMs: middleMs })
    assert.deepEqual(
      [letter?.job.attempt, letter?.job.tenant, letter?.error.message],
      [1, { orgId: 'acme' }, 'no invoice 1'],
    )
    assert.deepEqual(idsOf(await desk.list({ fingerprint: letter?.fingerprint ?? '' })), [third, first])
    assert.deepEqual(idsOf(await desk.list({ fingerprint: letter?.fingerprint ?? '', limit: 1 })), [third])
    await assert.rejects(desk.list({ limit: 0 }), rejects('ERR_OPTION_INVALID', /'limit' is 0/))
  })

  test('groups by cause, the largest first', async (t) => {
    const { desk, bury } = await start(t)
    await bury('erase', 'locked')
    await bury('bill', 'no invoice 1')
    const newest = await bury('bill', 'no invoice 2')
    const groups = await desk.groups()
    assert.deepEqual(
      groups.map(({ type, count, error }) => [type, count, error]),
      [
        ['bill', 2, 'Error: no invoice <n>'],
        ['erase', 1, 'Error: locked'],
      ],
    )
    assert.equal(groups[0]?.newestId, newest)
    assert.equal((groups[0]?.newestAtMs ?? 0) - (groups[0]?.oldestAtMs ?? 0), 10)
  })

  test('a group’s selection is what was counted: letters that die later are left alone', async (t) => {
    const { desk, bury } = await start(t)
    const [first, second] = [await bury('bill', 'no invoice 1'), await bury('bill', 'no invoice 2')]
    const [group] = await desk.groups()
    const later = await bury('bill', 'no invoice 3')
    assert.ok(group)
    const { done, refused } = await desk.replayAll(group.selection, ann)
    assert.deepEqual([group.count, done, refused], [2, 2, {}])
    assert.deepEqual(idsOf(await desk.list()), [later])
    assert.equal((await desk.causes()).seen, 1)
    assert.ok(first !== second)
  })

  test('a dry run answers with the selection that it looked at, and later letters do not join it', async (t) => {
    const { desk, bury } = await start(t)
    for (let n = 0; n < 3; n += 1) await bury('bill', `no invoice ${n}`)
    for (const selection of [{}, { type: 'bill' }, { limit: 2 }]) {
      const dry = await desk.replayAll(selection, ann, { dryRun: true })
      await bury('bill', 'no invoice 9')
      const again = await desk.replayAll(dry.selection, ann, { dryRun: true })
      assert.deepEqual(again, dry)
    }
    const none = await desk.replayAll({ type: 'erase' }, ann, { dryRun: true })
    await bury('erase')
    assert.equal((await desk.replayAll(none.selection, ann)).done, 0)
  })

  test('causes that are not counted to the end say so, and their selection still means all of them', async (t) => {
    const { desk, bury } = await start(t)
    for (let n = 0; n < 3; n += 1) await bury('bill', `no invoice ${n}`)
    const { groups, seen, complete } = await desk.causes({}, { signal: AbortSignal.abort() })
    assert.deepEqual([groups, seen, complete], [[], 0, false])
    const { groups: all, complete: isComplete } = await desk.causes()
    assert.deepEqual([all[0]?.count, isComplete], [3, true])
  })

  // A170
  test('shows one with its history and audit, and says when there is none', async (t) => {
    const { desk, bury } = await start(t)
    const id = await bury('bill')
    await desk.discard({ ids: [id] }, ann)
    const shown = await desk.show(id)
    assert.equal(shown.job.state, 'discarded')
    assert.equal(shown.history.at(-1)?.name, 'discarded')
    assert.deepEqual(
      shown.audit.map(({ action }) => action),
      ['discard'],
    )
    await assert.rejects(desk.show('nobody'), rejects('ERR_JOB_UNKNOWN', /^Dead letter not found: nobody/))
    await assert.rejects(desk.replay('nobody', ann), rejects('ERR_JOB_UNKNOWN', /^Dead letter not found: nobody/))
  })
})

describe('replaying', () => {
  // X012 X034 X035 B127
  test('keeps id, options, tenant and key, and happens once', async (t) => {
    const { mill, desk, bury } = await start(t)
    const tenant = { orgId: 'acme', workspaceId: 'north' }
    const id = await bury('bill', 'boom', { tenant, key: 'k', priority: 2, attempts: 7, timeout: '9s' })
    const answers = await Promise.allSettled([desk.replay(id, ann), desk.replay(id, ann)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const job = await mill.job(id)
    assert.deepEqual(
      [
        job?.state,
        job?.tenant,
        job?.key,
        job?.priority,
        job?.attempts,
        job?.attempt,
        job?.replays,
        job?.options?.timeoutMs,
      ],
      ['queued', tenant, 'k', 2, 7, 0, 1, 9_000],
    )
    const [entry, ...more] = await desk.audit()
    assert.deepEqual(more, [])
    assert.partialDeepStrictEqual(entry, { ...ann, action: 'replay', jobId: id, type: 'bill' })
    assert.partialDeepStrictEqual(entry?.before, { state: 'dead_letter', attempt: 1, replays: 0, tenant })
    assert.partialDeepStrictEqual(entry?.after, { state: 'queued', attempt: 0, replays: 1, tenant })
    assert.equal('payload' in (entry?.before ?? {}), false)
  })

  test('an edited payload is checked against its definition, and the audit has its hash and what changed', async (t) => {
    const { mill, desk, bury } = await start(t)
    const id = await bury('bill')
    await assert.rejects(
      desk.replay(id, ann, { payload: { n: 'x' } }),
      rejects('ERR_PAYLOAD_INVALID', /n is no number/),
    )
    assert.equal((await mill.job(id))?.state, 'dead_letter')
    await desk.replay(id, ann, { payload: { n: 2 } })
    const job = await mill.job(id)
    assert.deepEqual([job?.payload, job?.payloadVersion], ['{"n":2}', 2])
    const [entry] = await desk.audit()
    const edit = Object(entry?.after?.edit)
    // Its schema cannot say what is secret.
    assert.deepEqual(edit.changed, [{ path: '/n' }])
    assert.deepEqual(
      [await desk.isPayload(edit.before, { n: 1 }), await desk.isPayload(edit.after, { n: 1 })],
      [true, false],
    )
  })

  test('what was replayed too often takes force', async (t) => {
    const { mill, desk, bury } = await start(t, { replaysMax: 2 })
    const id = await bury('bill')
    for (let replays = 1; replays <= 2; replays += 1) {
      await desk.replay(id, ann)
      await die(mill, 'bill')
    }
    await assert.rejects(desk.replay(id, ann), rejects('ERR_DESK_REFUSED', /was replayed 2 times/))
    const all = await desk.replayAll({}, ann)
    assert.deepEqual([all.seen, all.done, all.refused], [1, 0, { 'replayed-too-often': 1 }])
    await desk.replay(id, ann, { force: true })
    assert.equal((await mill.job(id))?.replays, 3)
  })

  // B128
  test('a filter replays its own and leaves the rest; a dry run leaves all', async (t) => {
    const { mill, desk, bury } = await start(t)
    const bills = [await bury('bill'), await bury('bill')]
    const other = await bury('erase')
    const dry = await desk.replayAll({ type: 'bill' }, ann, { dryRun: true })
    assert.deepEqual([dry.seen, dry.done, dry.total, dry.dryRun], [2, 2, 2, true])
    assert.equal((await desk.list()).length, 3)
    assert.deepEqual(await desk.audit(), [])
    const limited = await desk.replayAll({ type: 'bill', limit: 1 }, ann)
    assert.deepEqual([limited.seen, limited.done, limited.total], [1, 1, 1])
    const real = await desk.replayAll({ type: 'bill' }, ann)
    assert.deepEqual([real.seen, real.done, real.interrupted], [1, 1, false])
    assert.deepEqual(idsOf(await desk.list()), [other])
    for (const id of bills) assert.equal((await mill.job(id))?.state, 'queued')
  })

  test('a selection replays each named letter once and counts ids that are no dead letters', async (t) => {
    const { mill, desk, bury } = await start(t)
    const [a, b] = [await bury('bill'), await bury('bill', 'boom', { key: 'k' })]
    await mill.enqueue('bill', { n: 1 }, { key: 'k' })
    const outcome = await desk.replayAll({ ids: [a, a, b, 'nobody'] }, ann)
    assert.deepEqual([outcome.seen, outcome.done, outcome.refused], [2, 1, { changed: 1 }])
  })

  test('an interrupted run goes on where it ended, and none is replayed twice', async (t) => {
    const { mill, desk } = await start(t)
    await mill.enqueueMany(
      'bill',
      Array.from({ length: 250 }, () => ({ n: 1 })),
    )
    await die(mill, 'bill')
    const stop = new AbortController()
    const first = await desk.replayAll({}, ann, { signal: stop.signal, onProgress: () => stop.abort() })
    assert.deepEqual([first.done, first.total, first.interrupted], [100, 250, true])
    const second = await desk.replayAll({}, ann)
    assert.deepEqual([second.done, second.total, second.interrupted], [150, 150, false])
    const jobs = await mill.jobs({ limit: 1_000 })
    assert.deepEqual(new Set(jobs.map(({ replays }) => replays)), new Set([1]))
  })

  test('a letter that dies again during the run is not replayed again by it', async (t) => {
    const { clock, mill, desk } = await start(t)
    await mill.enqueueMany(
      'bill',
      Array.from({ length: 150 }, () => ({ n: 1 })),
    )
    await die(mill, 'bill')
    await clock.advance(10)
    let deaths: Promise<void> = Promise.resolve()
    const run = desk.replayAll({}, ann, {
      rate: 1_000,
      onProgress: () => {
        deaths = deaths.then(() => die(mill, 'bill'))
      },
    })
    let running = true
    void run.finally(() => {
      running = false
    })
    while (running) await clock.advance(50)
    await deaths
    assert.equal((await run).done, 150)
    assert.deepEqual(new Set((await desk.list({ limit: 1_000 })).map(({ job }) => job.replays)), new Set([1]))
  })

  test('a rate is kept, and progress is told', async (t) => {
    const { clock, mill, desk } = await start(t)
    await mill.enqueueMany(
      'bill',
      Array.from({ length: 40 }, () => ({ n: 1 })),
    )
    await die(mill, 'bill')
    const told: (readonly [atMs: number, done: number])[] = []
    const startedMs = clock.nowMs()
    const run = desk.replayAll({}, ann, {
      rate: 20,
      onProgress: ({ done }) => told.push([clock.nowMs() - startedMs, done]),
    })
    let running = true
    void run.finally(() => {
      running = false
    })
    while (running) await clock.advance(10)
    assert.equal((await run).done, 40)
    assert.equal(told.at(-1)?.[1], 40)
    for (const [atMs, done] of told) assert.ok(done <= 2 + (atMs / 1_000) * 20, `${done} after ${atMs} ms`)
    await assert.rejects(desk.replayAll({}, ann, { rate: 0 }), rejects('ERR_OPTION_INVALID', /'rate' is 0/))
  })
})
