import assert from 'node:assert/strict'
import type { Engine } from '../../../src/engine/engine.ts'
import type { JobLogs } from '../../../src/engine/job-logs.ts'
import type { CaseFile } from '../../case.ts'
import { deadLetters, erasing, inspection, need, retention } from '../../needs.ts'
import { logs } from '../../operations.ts'
import { complete, dead, retry, type Stage } from '../../stage.ts'

const KEEP = { lines: 200, bytes: 65_536 }
const by = { who: 'suite', reason: 'test' }

const line = (message: string): string => JSON.stringify({ message })

function logsOn(engine: Engine): JobLogs {
  assert.ok(engine.logs, 'the engine declares logs and has none')
  return engine.logs
}

/** A job says something. */
async function say(
  stage: Stage,
  id: string,
  lines: readonly string[],
  more: { skipped?: number; keep?: typeof KEEP } = {},
) {
  const { skipped = 0, keep = KEEP } = more
  await logsOn(stage.engine).append([{ job: { id, type: stage.type }, skipped, lines }], keep)
}

const read = async (stage: Stage, id: string, on: Engine = stage.engine): Promise<readonly [number, string][]> =>
  (await logsOn(on).read(id)).map(({ seq, line: text }) => [seq, text])

export const keptLogs: CaseFile = {
  level: 'port',
  concept: 'Logs of jobs',
  cases: [
    {
      name: 'logs: lines are kept in their order and numbered over all calls, and every view reads them',
      guarantees: ['I12'],
      ...need(logs),
      async run(stage) {
        const [{ id }, { id: silent }] = [await stage.put(), await stage.put()]
        await say(stage, id, [line('one'), line('two')])
        await say(stage, id, [line('three')])
        const expected = [line('one'), line('two'), line('three')].map((text, index) => [index + 1, text])
        assert.deepEqual(await read(stage, id), expected)
        assert.deepEqual(await read(stage, id, await stage.other()), expected)
        assert.deepEqual(await read(stage, silent), [])
      },
    },
    {
      name: 'logs: one call adds lines of many jobs, and drops those of a job that is not stored',
      guarantees: ['I12'],
      ...need(logs),
      async run(stage) {
        const [{ id: a }, { id: b }] = [await stage.put(), await stage.put()]
        const unknown = stage.job().id
        const parts = [a, unknown, b].map((id) => ({ job: { id, type: stage.type }, skipped: 0, lines: [line(id)] }))
        await logsOn(stage.engine).append(parts, KEEP)
        assert.deepEqual(await read(stage, a), [[1, line(a)]])
        assert.deepEqual(await read(stage, b), [[1, line(b)]])
        assert.deepEqual(await read(stage, unknown), [])
        await stage.engine.enqueue([stage.job({ id: unknown })])
        assert.deepEqual(await read(stage, unknown), [], 'a job that comes later has said nothing')
      },
    },
    {
      name: 'logs: the newest lines are kept, and numbers tell how many are gone',
      guarantees: ['I10'],
      ...need(logs),
      async run(stage) {
        const { id } = await stage.put()
        const keep = { lines: 3, bytes: 65_536 }
        for (let n = 1; n <= 5; n += 1) await say(stage, id, [line(`${n}`)], { keep })
        assert.deepEqual(
          await read(stage, id),
          [3, 4, 5].map((n) => [n, line(`${n}`)]),
        )
        await say(stage, id, [line('after a gap')], { skipped: 1, keep })
        assert.deepEqual(await read(stage, id), [
          [5, line('5')],
          [7, line('after a gap')],
        ])
      },
    },
    {
      name: 'logs: the newest bytes are kept, and always the last line',
      guarantees: ['I10'],
      ...need(logs),
      async run(stage) {
        const { id } = await stage.put()
        const keep = { lines: 100, bytes: 1_000 }
        const long = (letter: string): string => line(letter.repeat(440))
        for (const letter of ['a', 'b', 'c']) await say(stage, id, [long(letter)], { keep })
        assert.deepEqual(await read(stage, id), [
          [2, long('b')],
          [3, long('c')],
        ])
        await say(stage, id, [line('ö'.repeat(480))], { keep })
        assert.deepEqual(await read(stage, id), [[4, line('ö'.repeat(480))]], 'bytes are counted, not characters')
      },
    },
    {
      name: 'logs: any text comes back as it was said',
      guarantees: ['I10'],
      ...need(logs),
      async run(stage) {
        const { id } = await stage.put()
        const texts = [
          'NUL \0 and \x1f',
          'ünï → 日本 🎺',
          'half \ud83c',
          `'quoted' "twice" \\ {} $1 %s`,
          '',
          'line\nbreak',
        ]
        await say(stage, id, texts.map(line))
        assert.deepEqual(
          (await read(stage, id)).map(([, text]) => text),
          texts.map(line),
        )
      },
    },
    {
      name: 'logs: they stay over attempts, and a holder that has lost its lease still adds to them',
      guarantees: ['I3', 'I12'],
      ...need(logs, inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await say(stage, id, [line('first')])
        await stage.settle(consumer, lease, retry())
        const second = await stage.one(consumer)
        await say(stage, id, [line('second')])
        await stage.recover(second)
        await say(stage, id, [line('late')])
        const third = await stage.one(consumer)
        await stage.settle(consumer, third, complete)
        await say(stage, id, [line('after the end')])
        assert.deepEqual(
          (await read(stage, id)).map(([, text]) => text),
          ['first', 'second', 'late', 'after the end'].map(line),
        )
        const history = await stage.engine.inspector?.history(id)
        assert.equal(history?.at(-1)?.name, 'completed')
        assert.ok(
          history?.some(({ name }) => name === 'failed'),
          'the history is what it would be without them',
        )
      },
    },
    {
      name: 'logs: they go with a job that is not kept, one that is swept, purged or erased, and with no other',
      guarantees: ['I9', 'I12'],
      ...need(logs, retention, deadLetters, erasing),
      async run(stage) {
        const jobs = await Promise.all(Array.from({ length: 5 }, () => stage.put()))
        const [unkept = '', swept = '', purged = '', erased = '', stays = ''] = jobs.map(({ id }) => id)
        for (const { id } of jobs) {
          await say(stage, id, [line(id)])
          assert.deepEqual(await read(stage, id), [[1, line(id)]])
        }
        const consumer = await stage.consume()
        for (const lease of await stage.take(consumer, 5)) {
          const { id } = lease.job
          if (id === unkept)
            await stage.settle(consumer, lease, { kind: 'complete', result: '1', durationMs: 1, keep: 0 })
          if (id === swept) await stage.settle(consumer, lease, complete)
          if (id === purged || id === erased) await stage.settle(consumer, lease, dead)
        }
        const rules = [{ what: 'completed', beforeMs: stage.nowMs + 60_000 }] as const
        await stage.engine.retention?.sweep(rules, { from: null, max: 100 })
        await stage.engine.deadLetters?.remove([purged], by)
        await stage.engine.deadLetters?.remove([erased], by, { erase: true })
        for (const id of [unkept, swept, purged, erased]) {
          await say(stage, id, [line('too late')])
          assert.deepEqual(await read(stage, id), [])
        }
        assert.deepEqual(await read(stage, stays), [[1, line(stays)]])
        await stage.engine.enqueue([stage.job({ id: unkept })])
        assert.deepEqual(await read(stage, unkept), [], 'nothing of the old job is left under its id')
      },
    },
    {
      name: 'logs: a long history and a long log do not push each other out',
      guarantees: ['I10'],
      ...need(logs, inspection),
      async run(stage) {
        const { id } = await stage.put({ attempts: 500 })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        const many = Array.from({ length: 200 }, (_, index) => line(`${index}`))
        await say(stage, id, many)
        await say(stage, id, many)
        const history = (await stage.engine.inspector?.history(id)) ?? []
        assert.ok(history.some(({ name }) => name === 'failed'))
        for (let n = 0; n < 70; n += 1) await stage.settle(consumer, await stage.one(consumer), retry())
        const kept = await read(stage, id)
        assert.deepEqual([kept.length, kept[0]?.[0], kept.at(-1)?.[0]], [200, 201, 400])
        const longer = (await stage.engine.inspector?.history(id)) ?? []
        assert.ok(longer.length > 100, `${longer.length} events`)
      },
    },
  ],
}
