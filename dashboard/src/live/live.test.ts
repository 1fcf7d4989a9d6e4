import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Result } from '../api/client.ts'
import { Live, type LiveState, waitBeforeTry } from './live.ts'

type Stream = ReadableStream<Uint8Array<ArrayBuffer>>

const refused: Result<Stream> = {
  ok: false,
  problem: { status: 0, code: 'UNREACHABLE', message: 'no answer', issues: [] },
}

function streamOf(text: string): Result<Stream> {
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text))
      controller.close()
    },
  })
  return { ok: true, value: stream }
}

/** Runs a live stream against a list of answers; it ends when the list does. */
function play(answers: readonly Result<Stream>[]) {
  const states: LiveState[] = []
  const waits: number[] = []
  const heard: (readonly string[])[] = []
  const rest = [...answers]
  let backs = 0
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const live = new Live({
    open: async () => {
      const next = rest.shift()
      if (next !== undefined) return next
      live.stop()
      resolve()
      return refused
    },
    wait: async (ms) => {
      waits.push(ms)
    },
    random: () => 1,
  })
  live.onState((state) => states.push(state))
  live.onBack(() => {
    backs += 1
  })
  live.on('jobs', ({ ids }) => heard.push(ids))
  live.start()
  return { ended, states, waits, heard, backs: () => backs }
}

test('a lost stream is opened again, and pages hear that they may have missed something', async () => {
  const event = 'event: jobs\ndata: {"ids":["a"]}\n\n'
  const run = play([streamOf(event), refused, streamOf(event)])
  await run.ended
  assert.deepEqual(run.heard, [['a'], ['a']])
  assert.equal(run.backs(), 1)
  assert.deepEqual(run.states, ['connecting', 'live', 'waiting', 'live', 'waiting', 'resting'])
})

test('each failure in a row waits longer, and a success starts anew', async () => {
  const run = play([refused, refused, refused, streamOf(''), refused])
  await run.ended
  assert.deepEqual(run.waits, [500, 1_000, 2_000, 500, 1_000])
})

test('the wait is bounded, and spread over half of itself', () => {
  assert.equal(waitBeforeTry(50, 1), 15_000)
  assert.equal(waitBeforeTry(50, 0), 7_500)
})

test('a stream that asks for a token is not tried again', async () => {
  const problem = { status: 401, code: 'UNAUTHORIZED', message: 'a token, please', issues: [] }
  let opened = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const live = new Live({
    open: async () => {
      opened += 1
      return { ok: false, problem }
    },
    wait: async () => assert.fail('it waits for another try'),
  })
  live.onState((state) => state === 'waiting' && resolve())
  live.start()
  await promise
  assert.equal(opened, 1)
})
