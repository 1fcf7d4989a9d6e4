import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineJob, open } from 'millrace'
import { TestClock } from '../../testing/test-clock.ts'
import { type Canvas, renderTop } from './frame.ts'
import { type TopSnapshot, TopWatch, toJson } from './snapshot.ts'

const PIPE: Canvas = { columns: null, rows: null, paint: (_style, text) => text }
const on = (columns: number, rows: number): Canvas => ({ ...PIPE, columns, rows })

/** One job that runs and says how far it is, one that waits, one that is dead. */
async function look(): Promise<Readonly<Record<'first' | 'second' | 'third', TopSnapshot>>> {
  const clock = new TestClock()
  const mill = await open('memory:', { clock })
  const watch = new TopWatch(mill, 'redis://ann:secret@localhost/0', clock)
  const first = await watch.look()
  const [index, bill, mail] = [
    defineJob({ type: 'index' }),
    defineJob({ type: 'bill' }),
    defineJob({ type: 'mail' }),
  ] as const
  const consumer = await mill.engine.consume({
    types: ['index', 'bill', 'done'].map((type) => ({ type, leaseMs: 60_000 })),
    worker: 'w:1:a',
  })
  const claim = async () => {
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
    assert.ok(lease)
    return lease
  }
  await mill.enqueue(bill, { card: 'never shown' })
  const error = { name: 'Error', code: null, message: 'no\u001b[2J\nsuch bill', stack: null }
  await consumer.settle([{ lease: await claim(), outcome: { kind: 'dead', error } }])
  for (let done = 0; done < 20; done += 1) {
    await mill.enqueue(defineJob({ type: 'done' }), null)
    await consumer.settle([{ lease: await claim(), outcome: { kind: 'complete', result: 'null', durationMs: 1 } }])
  }
  await mill.enqueue(index, null)
  await consumer.report(await claim(), JSON.stringify({ percent: 25 }))
  await mill.enqueue(mail, { card: 'never shown' })
  await mill.enqueue(mail, null, { delay: '1h' })
  await clock.advance(10_000)
  const second = await watch.look()
  await clock.advance(5_000)
  const third = await watch.look()
  await mill.close()
  return { first, second, third }
}

describe('the frame of top', () => {
  it('leaves out the rates of types where they do not fit, rather than cutting numbers', async () => {
    const { second } = await look()
    const tableOf = (columns: number): readonly string[] => {
      const lines = renderTop(second, on(columns, 40))
      return lines.slice(
        lines.findIndex((line) => line.startsWith('TYPE')),
        lines.indexOf('Running') - 1,
      )
    }
    assert.match(tableOf(61)[0] ?? '', /^TYPE +READY +DELAYED +RUNNING +COMPLETED +DEAD +IN\/S +DONE\/S$/)
    for (const columns of [60, 50]) {
      const [heading = '', ...rows] = tableOf(columns)
      assert.match(heading, /^TYPE +READY +DELAYED +RUNNING +COMPLETED +DEAD( +IN\/S)?$/)
      for (const row of rows) assert.doesNotMatch(row, /…/, row)
    }
  })

  it('shows counts, rates since the look before, progress, what waits longest and what died', async () => {
    const { first, second, third } = await look()
    assert.equal(first.total.rates, null)
    assert.deepEqual(second.total.rates, { enqueued: 2.4, completed: 2, dead: 0.1 })
    assert.deepEqual(third.total.rates, { enqueued: 0, completed: 0, dead: 0 })
    const text = renderTop(second, PIPE).join('\n')
    assert.match(text, /in 2\.4\/s {2}done 2\.0\/s {2}dead 0\.1\/s {2}oldest waiting: 10s, mail 01/)
    assert.match(text, /^TYPE +READY +DELAYED +RUNNING +COMPLETED +DEAD +IN\/S +DONE\/S$/m)
    assert.match(text, /^mail +1 +1 +0 +0 +0 +0\.2 +0\.0$/m)
    assert.match(text, /^total +1 +1 +1 +20 +1 +2\.4 +2\.0$/m)
    assert.match(text, /^ {2}01\w+ +index +1\/3 +10s +█{5}░{15} {2}25 %$/m)
    assert.match(text, /^Dead letters: 1\n {2}bill 01\w+ 10s ago: no.*such bill$/m)
  })

  it('shows no payload, no credentials and no control character, in text and in JSON', async () => {
    const { second } = await look()
    const json = JSON.stringify(toJson(second))
    for (const text of [renderTop(second, PIPE).join('\n'), json]) {
      assert.doesNotMatch(text, /never shown|secret/)
      assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}/u)
    }
    assert.partialDeepStrictEqual(JSON.parse(json), {
      types: [{ type: 'bill' }, { type: 'done' }],
      oldest: { type: 'mail' },
    })
  })

  it('fits into the screen, and keeps the way out in sight', async () => {
    const { second } = await look()
    const [job] = second.running
    const [line] = second.types
    assert.ok(job && line)
    const crowded: TopSnapshot = {
      ...second,
      running: Array.from({ length: 20 }, () => job),
      types: Array.from({ length: 50 }, (_, index) => ({ ...line, type: `type-${index}` })),
      dead: Array.from({ length: 20 }, () => second.dead[0] ?? job),
    }
    for (const [columns, rows] of [
      [80, 24],
      [200, 60],
      [60, 20],
    ] as const) {
      const lines = renderTop(crowded, on(columns, rows))
      assert.ok(lines.length <= rows, `${lines.length} lines on ${rows} rows`)
      for (const drawn of lines) assert.ok(drawn.length <= columns, drawn)
      assert.match(lines.at(-1) ?? '', /q or Ctrl-C/)
      assert.equal(
        lines.some((drawn) => /and \d+ more/.test(drawn)),
        rows < 60,
      )
      assert.ok(lines.some((drawn) => drawn.startsWith('total')))
    }
  })

  it('says so when there is nothing', async () => {
    const { first } = await look()
    const text = renderTop(first, PIPE).join('\n')
    assert.match(text, /^nothing waits$/m)
    assert.match(text, /^Running\n {2}nothing$/m)
    assert.doesNotMatch(text, /Dead letters/)
  })
})
