import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Counts } from '../engine/engine.ts'
import type { Pauses } from '../engine/pauses.ts'
import type { Beat, Seen } from '../engine/presence.ts'
import { listWorkers } from './workers.ts'

const NOW = 10_000_000
const MINUTE = 60_000

function beatOf(said: Partial<Beat> = {}, running = 0): Beat {
  const atMs = said.atMs ?? NOW - 1_000
  return {
    type: 'mail',
    instance: 'w',
    status: 'RUNNING',
    atMs,
    lastJobAtMs: null,
    lag: null,
    stoppingSinceMs: null,
    work: { host: 'h', pid: 1, startedAtMs: NOW - 60 * MINUTE, concurrency: 2, running, jobs: [] },
    ...said,
  }
}

function memberOf({ work: _, ...beat }: Beat): Beat {
  return beat
}

interface Scene {
  readonly beats?: readonly Beat[]
  readonly seen?: readonly Seen[]
  readonly ready?: number
  readonly paused?: boolean
}

function look({ beats = [], seen = [], ready = 0, paused = false }: Scene) {
  let counted = 0
  const counts = async (): Promise<Counts> => {
    counted += 1
    return { mail: { ready, delayed: 0, inProgress: 0, completed: 0, dead: 0 } }
  }
  const list: Pauses['list'] = async () => (paused ? [{ type: 'mail', who: '', reason: '', sinceMs: 0 }] : [])
  const pauses = { list }
  const presence = { list: async () => beats, seen: async () => [...seen, ...beats] }
  return {
    views: () => listWorkers({ presence, counts, pauses }, NOW),
    conditions: async () => (await listWorkers({ presence, counts, pauses }, NOW)).map(({ condition }) => condition),
    get counted() {
      return counted
    },
  }
}

const quietSince = { lastJobAtMs: NOW - 6 * MINUTE }
const recent = { lastJobAtMs: NOW - MINUTE }

// D10 D11 D13 X158
for (const [condition, scene] of [
  ['working', { beats: [beatOf(recent, 1)] }],
  ['idle', { beats: [beatOf(recent)], ready: 5 }],
  ['idle', { beats: [beatOf(quietSince)], ready: 0 }],
  ['stuck', { beats: [beatOf(quietSince)], ready: 5 }],
  // It has never handled anything since it started an hour ago.
  ['stuck', { beats: [beatOf()], ready: 5 }],
  // A long job is no standstill, and neither is a worker without room.
  ['working', { beats: [beatOf(quietSince, 1)], ready: 5 }],
  ['working', { beats: [beatOf(quietSince), beatOf({ type: 'sms', ...recent }, 2)], ready: 5 }],
  ['idle', { beats: [beatOf(quietSince)], ready: 5, paused: true }],
  // A member of a Kafka group: what it does is known to nobody else.
  ['running', { beats: [memberOf(beatOf())], ready: 5 }],
  ['stopping', { beats: [beatOf({ status: 'SHUTTING_DOWN', stoppingSinceMs: NOW - MINUTE })] }],
  ['overdue', { beats: [beatOf({ status: 'SHUTTING_DOWN', stoppingSinceMs: NOW - 3 * MINUTE })] }],
  ['late', { seen: [{ type: 'mail', instance: 'w', atMs: NOW - 40_000 }] }],
  ['missing', { seen: [{ type: 'mail', instance: 'w', atMs: NOW - 61_000 }] }],
] as const satisfies readonly (readonly [string, Scene])[]) {
  test(`a worker is ${condition}: ${JSON.stringify(scene).slice(0, 90)}`, async () => {
    assert.deepEqual(await look(scene).conditions(), [condition])
  })
}

test('what has to be done is said for those that need somebody, and only for them', async () => {
  const missing = { type: 'mail', instance: 'gone', atMs: NOW - 5 * MINUTE }
  const views = await look({ beats: [beatOf(quietSince)], seen: [missing], ready: 1 }).views()
  assert.deepEqual(
    views.map(({ id, condition, severity, action }) => [id, condition, severity, action !== null]),
    [
      ['gone', 'missing', 'critical', true],
      ['w', 'stuck', 'warning', true],
    ],
  )
  const [well] = await look({ beats: [beatOf(recent, 1)] }).views()
  assert.deepEqual([well?.severity, well?.action], [null, null])
})

test('the queues are counted only when a worker has been quiet for long', async () => {
  const busy = look({ beats: [beatOf(recent)] })
  await busy.views()
  assert.equal(busy.counted, 0)
  const quiet = look({ beats: [beatOf(quietSince)] })
  await quiet.views()
  assert.equal(quiet.counted, 1)
})

test('a worker is one line, whatever the number of its types, and a foreign one has no host', async () => {
  const jobs = [{ id: 'a', attempt: 1, startedAtMs: NOW }]
  const beat = beatOf(recent)
  const busy = beat.work === undefined ? beat : { ...beat, work: { ...beat.work, running: 1, jobs } }
  const { work: _, ...foreign } = beatOf({ instance: 'f', ...recent })
  const views = await look({ beats: [busy, beatOf({ type: 'sms', ...recent }), foreign] }).views()
  assert.deepEqual(
    views.map(({ id, host, running, concurrency, types }) => [id, host, running, concurrency, types.length]),
    [
      ['f', null, 0, null, 1],
      ['w', 'h', 1, 2, 2],
    ],
  )
  assert.deepEqual(views[1]?.types[0]?.jobs, jobs)
})

test('a worker whose type is paused is not stuck, however far behind it is, and has five minutes from the resume on', async () => {
  const conditionOf = async (pausedUntilMs: number): Promise<readonly string[]> => {
    const beat = beatOf({ ...quietSince, lag: 900 })
    const work = {
      host: 'h',
      pid: 1,
      startedAtMs: NOW - 60 * MINUTE,
      concurrency: 2,
      running: 0,
      jobs: [],
      pausedUntilMs,
    }
    return look({ beats: [{ ...beat, work }] }).conditions()
  }
  assert.deepEqual(await conditionOf(NOW - 1_000), ['idle'], 'paused at its last beat')
  assert.deepEqual(await conditionOf(NOW - 4 * MINUTE), ['idle'], 'resumed a while ago')
  assert.deepEqual(await conditionOf(NOW - 6 * MINUTE), ['stuck'])
})

test('members that the store knows are workers too: one with heartbeats once, with what it holds', async () => {
  const holds = [
    { type: 'mail', partition: 0, lag: 3 },
    { type: 'sms', partition: 1, lag: 4 },
  ]
  const members = async () => [
    { id: 'w', types: ['mail'], host: '10.0.0.1', holds },
    { id: 'spring-1', types: ['mail', 'sms'], host: '10.0.0.2', holds: [] },
  ]
  const presence = { list: async () => [beatOf(recent)], seen: async () => [] }
  const views = await listWorkers({ presence, members, counts: async () => ({}) }, NOW)
  assert.deepEqual(
    views.map(({ id, condition, host, types }) => [id, condition, host, types.map((one) => [one.type, one.holds])]),
    [
      [
        'spring-1',
        'running',
        '10.0.0.2',
        [
          ['mail', []],
          ['sms', []],
        ],
      ],
      ['w', 'idle', 'h', [['mail', [{ partition: 0, lag: 3 }]]]],
    ],
  )
})
