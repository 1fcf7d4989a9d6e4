import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bill, stageOn } from '../../test/fixtures/admin.ts'
import { open } from '../client/mill.ts'
import { startSampling } from '../observe/sampling/sampler.ts'
import { TestClock } from '../testing/test-clock.ts'
import type { Duration } from '../time/duration.ts'
import { createAdmin } from './admin.ts'
import type { AlertView } from './context.ts'
import { STREAM_EVENTS } from './contract/index.ts'

interface Told {
  readonly event: string
  readonly data: unknown
}

/** Reads a stream until `enough`; comments are told as events of their own. */
class Listener {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  #text = ''

  constructor(response: Response) {
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
    this.#reader = (response.body ?? assert.fail()).getReader()
  }

  async next(wanted: string): Promise<Told> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end >= 0) {
        const told = parse(this.#text.slice(0, end))
        this.#text = this.#text.slice(end + 2)
        if (told.event === wanted) return told
        continue
      }
      const { done, value } = await this.#reader.read()
      if (done) throw new Error(`the stream ended before ${wanted}`)
      this.#text += this.#decoder.decode(value, { stream: true })
    }
  }

  /** Resolves when the server has ended it. */
  async ended(): Promise<void> {
    for (;;) if ((await this.#reader.read()).done) return
  }

  close(): Promise<void> {
    return this.#reader.cancel()
  }
}

function parse(block: string): Told {
  const event = /^event: (.*)$/m.exec(block)?.[1]
  if (event === undefined) return { event: /^: (.*)$/m.exec(block)?.[1] ?? '', data: null }
  const data: unknown = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null')
  return { event, data }
}

async function start(t: { after(fn: () => Promise<void>): void }, alerts: AlertView[] = []) {
  const clock = new TestClock()
  const mill = await open('memory:', { clock, jobs: [bill] })
  const sampler = startSampling(mill, { clock })
  const admin = createAdmin(mill, {
    ...{ clock, sampler, page: null, peer: () => '127.0.0.1' },
    alerting: { current: () => alerts },
  })
  t.after(async () => {
    await admin.close()
    sampler.close()
    await mill.close()
  })
  const request = (init: RequestInit = {}) => admin.fetch(new Request('http://localhost/api/v1/events', init))
  const listen = async () => new Listener(await request())
  return { mill, clock, admin, listen, request }
}

/** Moves the clock until it has happened: how many turns a step of the sampler takes is not a test's business. */
async function whileMoving<T>(clock: TestClock, step: Duration, happens: Promise<T>): Promise<T> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  happens.then(over, over)
  for (let steps = 0; steps < 1_000 && !isOver; steps += 1) await clock.advance(step)
  return happens
}

const alert: AlertView = {
  ...{ rule: 'dead', severity: 'high', status: 'firing', sinceMs: 1, resolvedAtMs: null, text: 'it is', labels: {} },
}

test('a page is greeted with the overview, then told of steps, jobs and alerts as the contract has them', async (t) => {
  const { mill, clock, listen } = await start(t, [alert])
  const listener = await listen()
  const told = [await listener.next('alert'), await listener.next('overview')]
  const { id } = await mill.enqueue(bill, { n: 1 })
  told.push(await whileMoving(clock, 250, listener.next('jobs')))
  assert.deepEqual(told.at(-1)?.data, { ids: [id] })
  told.push(await whileMoving(clock, '2s', listener.next('overview')), await listener.next('point'))
  const schemas = new Map(Object.entries(STREAM_EVENTS))
  for (const { event, data } of told) assert.deepEqual(schemas.get(event)?.parse(data), data, event)
  await whileMoving(clock, '15s', listener.next('alive'))
  await listener.close()
})

test('an overview that says the same again is not told', async (t) => {
  const { mill, clock, listen } = await start(t)
  const listener = await listen()
  await listener.next('overview')
  await whileMoving(clock, '2s', listener.next('overview'))
  for (let steps = 0; steps < 5; steps += 1) await clock.advance('2s')
  await mill.pause('bill')
  const { data } = await whileMoving(clock, '2s', listener.next('overview'))
  assert.deepEqual(STREAM_EVENTS.overview.parse(data).paused, ['bill'], 'the next one that is told says something else')
  await listener.close()
})

test('bursts of jobs are told as at most a hundred ids, four times a second', async (t) => {
  const { mill, clock, listen } = await start(t)
  const listener = await listen()
  await listener.next('overview')
  await mill.enqueueMany(
    bill,
    Array.from({ length: 500 }, () => ({ n: 1 })),
  )
  const { data } = await whileMoving(clock, 250, listener.next('jobs'))
  assert.equal(STREAM_EVENTS.jobs.parse(data).ids.length, 100)
  await listener.close()
})

test('with nobody at the other end nothing listens', async (t) => {
  const { mill, listen, request } = await start(t)
  // Metrics and the sampler listen for jobs too, but not for their progress.
  const hasListener = () => mill.events.hasListener('job.progress')
  assert.equal((await request({ method: 'HEAD' })).status, 200)
  assert.equal(hasListener(), false)
  const [one, two] = [await listen(), await listen()]
  assert.equal(hasListener(), true)
  await one.close()
  assert.equal(hasListener(), true)
  await two.close()
  assert.equal(hasListener(), false)
})

test('a client that does not read is let go, and others go on', async (t) => {
  const alerts: AlertView[] = []
  const { clock, listen, request } = await start(t, alerts)
  const slow = (await request()).body?.getReader() ?? assert.fail()
  const listener = await listen()
  await listener.next('overview')
  // Each is told with the next step: after twenty the slow one has more than a megabyte before it.
  const text = 'x'.repeat(60_000)
  for (let n = 0; n < 20; n += 1) {
    alerts.push({ ...alert, rule: `rule-${n}`, text })
    await whileMoving(clock, '2s', listener.next('alert'))
  }
  await assert.rejects(slow.read(), /too slowly/)
  await whileMoving(clock, '15s', listener.next('alive'))
  await listener.close()
})

test('closing ends every stream', async (t) => {
  const { admin, listen } = await start(t)
  const [one, two] = [await listen(), await listen()]
  await one.next('overview')
  await admin.close()
  await Promise.all([one.ended(), two.ended()])
})

test('more streams than a server should hold are refused', async (t) => {
  const { request } = await start(t)
  const streams = await Promise.all(Array.from({ length: 100 }, () => request()))
  const refused = await request()
  assert.deepEqual([refused.status, JSON.parse(await refused.text()).code], [429, 'ERR_TOO_MANY_STREAMS'])
  await streams[0]?.body?.cancel()
  assert.equal((await request()).status, 200)
})

test('operations are told as they go', async (t) => {
  const { admin, bury, ask } = await stageOn(t, 'memory:')
  await bury()
  const listener = new Listener(await admin.fetch(new Request('http://localhost/api/v1/events')))
  await listener.next('overview')
  const { operation } = await ask('replayDeadLetters', { body: { selection: {} } })
  for (;;) {
    const { data } = await listener.next('operation')
    const told = STREAM_EVENTS.operation.parse(data)
    assert.equal(told.id, operation?.id)
    if (told.status === 'done') break
  }
  await listener.close()
})
