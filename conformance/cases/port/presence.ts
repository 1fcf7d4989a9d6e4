import assert from 'node:assert/strict'
import { presenceOf } from '../../../src/engine/capability-checks.ts'
import { type Beat, SEEN_MS } from '../../../src/engine/presence.ts'
import type { CaseFile } from '../../case.ts'
import { need } from '../../needs.ts'
import { presence } from '../../operations.ts'
import type { Stage } from '../../stage.ts'

const TTL_MS = 30_000

function beatOf(stage: Stage, said: Partial<Beat> = {}): Beat {
  return {
    type: stage.type,
    instance: 'suite:1:w',
    status: 'RUNNING',
    atMs: stage.nowMs,
    lastJobAtMs: null,
    lag: null,
    stoppingSinceMs: null,
    ...said,
  }
}

const byType = (one: Beat, other: Beat): number => (one.type < other.type ? -1 : 1)
const seenBy = async (stage: Stage): Promise<readonly string[]> =>
  (await presenceOf(stage.engine).seen()).map(({ instance }) => instance).sort()

export const presences: CaseFile = {
  level: 'port',
  concept: 'Presence',
  cases: [
    {
      // D02 D04
      name: 'what a worker says of its types is seen by every view, all of it',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const work = { host: 'h', pid: 7, startedAtMs: stage.nowMs - 5, concurrency: 10, running: 1 }
        const jobs = [{ id: 'a', attempt: 2, startedAtMs: stage.nowMs - 3 }]
        const beats = [
          beatOf(stage, { lastJobAtMs: stage.nowMs - 1, lag: 3, work: { ...work, jobs } }),
          beatOf(stage, { type: `${stage.type}:b`, status: 'SHUTTING_DOWN', stoppingSinceMs: stage.nowMs - 2 }),
        ]
        await presenceOf(stage.engine).beat(beats, TTL_MS)
        const other = presenceOf(await stage.other())
        assert.deepEqual([...(await other.list())].sort(byType), beats)
        const [first] = [...(await other.seen())].filter(({ type }) => type === stage.type)
        assert.deepEqual(first, { type: stage.type, instance: 'suite:1:w', atMs: stage.nowMs })
      },
    },
    {
      // D06
      name: 'a beat takes the place of the one before, and holds for as long as it says',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const here = presenceOf(stage.engine)
        await here.beat([beatOf(stage)], TTL_MS)
        await stage.harness.advance(TTL_MS - 5_000)
        const again = beatOf(stage, { lag: 9 })
        await here.beat([again], TTL_MS)
        await stage.harness.advance(TTL_MS - 5_000)
        assert.deepEqual(await here.list(), [again])
        await stage.harness.advance(5_001)
        assert.deepEqual(await here.list(), [])
      },
    },
    {
      // X156
      name: 'who went without a goodbye can be missed for a day, and is then forgotten',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const here = presenceOf(stage.engine)
        await here.beat([beatOf(stage, { instance: 'lost' })], TTL_MS)
        await stage.harness.advance(SEEN_MS - 60_000)
        await here.beat([beatOf(stage, { instance: 'other' })], TTL_MS)
        assert.deepEqual(await here.list(), [beatOf(stage, { instance: 'other' })])
        assert.deepEqual(await seenBy(stage), ['lost', 'other'])
        await stage.harness.advance(60_000 + TTL_MS + 1_000)
        await here.beat([beatOf(stage, { instance: 'third' })], TTL_MS)
        assert.deepEqual(await seenBy(stage), ['other', 'third'])
      },
    },
    {
      name: 'a goodbye is for the types that it names and for one worker, and may be said twice',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const here = presenceOf(stage.engine)
        const [one, two] = [stage.type, `${stage.type}:b`]
        const [kept, other] = [beatOf(stage, { type: two }), beatOf(stage, { instance: 'suite:1:x' })]
        await here.beat([beatOf(stage), kept], TTL_MS)
        await here.beat([other], TTL_MS)
        for (let times = 0; times < 2; times += 1) await presenceOf(await stage.other()).gone('suite:1:w', [one])
        assert.deepEqual([...(await here.list())].sort(byType), [other, kept])
        assert.deepEqual(await seenBy(stage), ['suite:1:w', 'suite:1:x'])
        await here.gone('suite:1:w', [one, two])
        assert.deepEqual(await seenBy(stage), ['suite:1:x'])
      },
    },
  ],
}
