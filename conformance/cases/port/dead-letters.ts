import assert from 'node:assert/strict'
import type { DeadLetters } from '../../../src/engine/engine.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, deadLetters, delay, inspection, keys, latest, need } from '../../needs.ts'
import { boom, complete, dead, first, idsOf, retry, type Stage } from '../../stage.ts'

const by = { who: 'suite', reason: 'test' }

function desk(stage: Stage): DeadLetters {
  assert.ok(stage.engine.deadLetters, 'the engine declares dead letters and has none')
  return stage.engine.deadLetters
}

/** Buries one job of the given type with an error that names it. */
async function bury(stage: Stage, type: string, message: string, key: string | null = null): Promise<string> {
  const { id } = await stage.put({ type, key })
  const consumer = await stage.consume({ types: [type] })
  await stage.settle(consumer, await stage.one(consumer), { kind: 'dead', error: { ...boom, message } })
  await consumer.close()
  return id
}

export const burying: CaseFile = {
  level: 'port',
  concept: 'Dead letters',
  cases: [
    {
      name: 'a dead job is counted and never handed out again',
      guarantees: ['I5'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        await stage.none(consumer, 'a dead job was handed out')
        await stage.harness.advance(stage.leaseMs * 2)
        await stage.none(consumer, 'a dead job was handed out later')
        await stage.expectCounts({ dead: 1 })
      },
    },
    {
      // A04 B123
      name: 'a dead letter is listed with its job and its whole error',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const error = { name: 'TypeError', code: 'E_X', message: 'x is not y', stack: 'at z' }
        const { id } = await stage.put({ payload: '"kept"' })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), { kind: 'dead', error })
        const letter = first(await desk(stage).list({ limit: 10 }))
        assert.deepEqual(letter.error, error)
        assert.deepEqual(
          [letter.job.id, letter.job.payload, letter.job.state, letter.job.attempt],
          [id, '"kept"', 'dead_letter', 1],
        )
      },
    },
    {
      // B126
      name: 'dead letters are listed newest first, by type and up to a limit',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
        const ids: string[] = []
        for (const [index, type] of [a, b, a].entries()) {
          ids.push(await bury(stage, type, `error ${index}`))
          await stage.harness.advance(10)
        }
        const list = async (filter: Parameters<DeadLetters['list']>[0]): Promise<readonly string[]> =>
          (await desk(stage).list(filter)).map(({ job }) => job.id)
        assert.deepEqual(await list({ limit: 10 }), [...ids].reverse())
        assert.deepEqual(await list({ limit: 2 }), [ids[2], ids[1]])
        assert.deepEqual(await list({ limit: 10, type: a }), [ids[2], ids[0]])
      },
    },
    {
      // B127
      name: 'a dead letter put back runs again with all its options and no attempts used',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const options = { timeoutMs: 4321, backoff: { kind: 'list', delays: ['1s', '2s'] } } as const
        const tenant = { orgId: 'org', workspaceId: 'ws' }
        const { id } = await stage.put({ priority: 2, attempts: 2, payloadVersion: 4, payload: '"p"', tenant, options })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        await stage.settle(consumer, await stage.one(consumer), dead)
        assert.deepEqual(await desk(stage).requeue([id], by), [true])
        await stage.expectCounts({ ready: 1 })
        const { job, attempt } = await stage.one(consumer)
        assert.equal(attempt, 1, 'attempts were not given back')
        assert.deepEqual(
          [job.id, job.priority, job.attempts, job.payloadVersion, job.payload, job.tenant, job.options],
          [id, 2, 2, 4, '"p"', tenant, options],
        )
        assert.deepEqual(await desk(stage).list({ limit: 10 }), [])
      },
    },
    {
      name: 'a dead letter put back shows no error and is due at once',
      guarantees: ['I9'],
      ...need(deadLetters, inspection, delay),
      async run(stage) {
        const { id } = await stage.put({ delayMs: 500 })
        await stage.harness.advance(501)
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        await stage.harness.advance(100)
        assert.deepEqual(await desk(stage).requeue([id], by), [true])
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.error, view.attempt, view.completedAtMs], ['queued', null, 0, null])
        assert.ok(view.runAtMs <= stage.nowMs)
      },
    },
    {
      // B49 B50 B127
      name: 'only a dead letter can be put back',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const { id } = await stage.put()
        assert.deepEqual(await desk(stage).requeue([id], by), [false], 'a queued job')
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.deepEqual(await desk(stage).requeue([id], by), [false], 'a running job')
        await stage.settle(consumer, lease, complete)
        assert.deepEqual(await desk(stage).requeue([id], by), [false], 'a completed job')
        assert.deepEqual(await desk(stage).requeue(['01ARZ3NDEKTSV4RRFFQ69G5FAV'], by), [false], 'an unknown job')
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      name: 'a dead letter that is put back holds its key again',
      guarantees: ['I7', 'I9'],
      ...need(deadLetters, keys),
      async run(stage) {
        const { id } = await stage.put({ key: 'k' })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        assert.deepEqual(await desk(stage).requeue([id], by), [true])
        assert.deepEqual((await stage.put({ key: 'k' })).receipt, { id, status: 'duplicate' })
      },
    },
    {
      name: 'a dead letter is not put back while another live job has its key',
      guarantees: ['I7', 'I9'],
      ...need(deadLetters, keys),
      async run(stage) {
        const { id } = await stage.put({ key: 'k' })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        const second = await stage.put({ key: 'k' })
        assert.deepEqual(await desk(stage).requeue([id], by), [false])
        assert.deepEqual(idsOf(await stage.take(consumer, 5)), [second.id])
        await stage.expectCounts({ inProgress: 1, dead: 1 })
      },
    },
    {
      name: 'of several dead letters only those are refused whose key another job has, also if it is stored meanwhile',
      guarantees: ['I7', 'I9'],
      ...need(deadLetters, keys),
      async run(stage) {
        const names = [
          'taken',
          'free',
          ...[1, 2, 3, 4, 5].flatMap((round) => [`before ${round}`, `${round}`, `after ${round}`]),
        ]
        const ids = new Map<string, string>()
        for (const key of names) ids.set(key, await bury(stage, stage.type, 'x', key))
        const requeue = (...keys: readonly string[]) =>
          desk(stage).requeue(
            keys.map((key) => ids.get(key) ?? ''),
            by,
          )
        await stage.put({ key: 'taken' })
        assert.deepEqual(await requeue('taken', 'free'), [false, true])
        const rival = await stage.other()
        for (const round of [1, 2, 3, 4, 5]) {
          const [answers, { receipt }] = await Promise.all([
            requeue(`before ${round}`, `${round}`, `after ${round}`),
            stage.put({ key: `${round}` }, rival),
          ])
          assert.deepEqual(answers, [true, receipt.status === 'duplicate', true])
        }
      },
    },
    {
      // X139 C32
      name: 'a dead version is not put back after a newer one of its latest key has come',
      guarantees: ['I4', 'I9'],
      ...need(deadLetters, latest),
      async run(stage) {
        const old = await stage.put({ latest: { key: 'k', seq: null } })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        await stage.put({ latest: { key: 'k', seq: null } })
        assert.deepEqual(await desk(stage).requeue([old.id], by), [false], 'a newer version waits')
        const newer = await stage.one(consumer)
        assert.deepEqual(await desk(stage).requeue([old.id], by), [false], 'a newer version runs')
        await stage.settle(consumer, newer, complete)
        assert.deepEqual(await desk(stage).requeue([old.id], by), [false], 'a newer version has run')
      },
    },
    {
      name: 'of two who put the same dead letter back one succeeds',
      guarantees: ['I9', 'I4'],
      ...need(deadLetters),
      async run(stage) {
        const id = await bury(stage, stage.type, 'x')
        const rival = await stage.other()
        assert.ok(rival.deadLetters)
        const answers = await Promise.all([desk(stage).requeue([id], by), rival.deadLetters.requeue([id], by)])
        assert.deepEqual(answers.flat().sort(), [false, true])
        assert.deepEqual(idsOf(await stage.take(await stage.consume(), 5)), [id])
      },
    },
    {
      name: 'a cancelled job is no dead letter: not counted, not listed, not put back',
      guarantees: ['I9'],
      ...need(deadLetters, cancellation),
      async run(stage) {
        const { id } = await stage.put()
        assert.equal(await stage.engine.controls?.cancel(id, by), true)
        assert.deepEqual(await desk(stage).list({ limit: 10 }), [])
        assert.deepEqual(await desk(stage).requeue([id], by), [false])
        await stage.expectCounts({})
      },
    },
  ],
}
