import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { open } from 'millrace'
import { renderFrame } from '../../examples/tour/view.ts'
import { ROOT, startScript, temporaryFolder } from './run.ts'

const TOUR = join(ROOT, 'examples/tour/main.ts')

describe('the tour', () => {
  it('shows every way a job can end, and stops cleanly on Ctrl-C', async (t) => {
    const cwd = await temporaryFolder(t)
    const tour = startScript(t, TOUR, ['--port', '0'], { cwd })
    for (const line of [
      /^completed +checksum /m,
      /^retried +collect-report /m,
      /^completed +collect-report .*attempt [2-6] of 6/m,
      /^Dashboard: http:\/\/127\.0\.0\.1:\d+$/m,
      /^dead +parse-ledger .*line 2 is not/m,
      /^dead +convert-price .*the currency 'EURO' is unknown/m,
      /^completed +write-manifest /m,
      /^progress +count-primes /m,
      /^completed +count-primes /m,
      /^superseded +index-docs /m,
      /^completed +index-docs /m,
      /^delayed +tidy-spool /m,
      /^cancelled .*too much work/m,
    ]) {
      await tour.said(line)
    }
    await tour.said('every kind of ending has happened once')
    // A second round is under way: something is likely to run.
    tour.child.kill('SIGINT')
    const { code, out, err } = await tour.ended
    assert.equal(code, 0, err)
    assert.equal(err, '')
    assert.match(out, /^Stopped: .* 0 leased\.$/m)
    const mill = await open(`sqlite:${join(cwd, 'millrace.db')}`)
    assert.deepEqual(await mill.jobs({ state: 'in_progress' }), [])
    assert.ok((await mill.jobs({ state: 'completed' })).length >= 8)
    await mill.close()
  })

  it('says what is wrong with its options', async (t) => {
    const wrong = await startScript(t, TOUR, ['--nope'], { cwd: await temporaryFolder(t) }).ended
    assert.equal(wrong.code, 2)
    assert.match(wrong.err, /^error: .*--nope.*\n$/)
    const nowhere = await startScript(t, TOUR, ['--engine', 'nowhere:'], { cwd: await temporaryFolder(t) }).ended
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.err, /^error: .*\(ERR_ENGINE_URL\)\n$/)
  })

  it('fits its live view into the terminal, whatever the jobs say', async () => {
    const mill = await open('memory:')
    for (const path of ['short', 'a'.repeat(300), 'line\nbreak \u001b[2J']) {
      const { defineJob } = await import('millrace')
      await mill.enqueue(defineJob({ type: 'a-type-with-a-long-name' }), { path })
    }
    const recent = await mill.jobs()
    await mill.close()
    const snapshot = {
      url: 'sqlite:./millrace.db',
      page: 'http://127.0.0.1:7420',
      nowMs: 0,
      upMs: 61_000,
      totals: { ready: 3, delayed: 0, inProgress: 0, completed: 0, dead: 0 },
      settledPerSecond: [0, 1, 2],
      running: [],
      recent,
      dead: [],
    }
    for (const [columns, rows] of [
      [80, 24],
      [40, 10],
      [200, 60],
    ] as const) {
      const lines = renderFrame(snapshot, { columns, rows, coloured: false })
      assert.ok(lines.length <= rows, `${lines.length} lines on ${rows} rows`)
      for (const line of lines) {
        assert.ok(line.length <= columns, line)
        assert.doesNotMatch(line, /\p{Cc}/u)
      }
    }
    const lines = renderFrame(snapshot, { columns: 80, rows: 24, coloured: false }).join('\n')
    assert.match(lines, /3 ready/)
    assert.match(lines, /1:01/)
    assert.match(lines, /a-type-with-a-/)
    assert.match(lines, /Ctrl-C/)
  })
})
