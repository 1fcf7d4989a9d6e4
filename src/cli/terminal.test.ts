import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { systemClock } from '../time/clock.ts'
import { clip, printable, systemTerminal, tableLines } from './terminal.ts'
import { openLog } from './until-stopped.ts'

/** A terminal of 40 columns, or a pipe, that remembers what was written to it. */
function surroundings(isTTY: boolean, env: NodeJS.ProcessEnv = {}) {
  const written: string[] = []
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 40, fd: 1 as const })
  stream.on('data', (chunk) => written.push(String(chunk)))
  // Only what the terminal uses of a stream is there.
  const stdout = stream as unknown as NodeJS.WriteStream & { fd: 1 }
  const stderr = new PassThrough() as unknown as NodeJS.WriteStream & { fd: 2 }
  return { given: { stdout, stderr, env }, written }
}

describe('the terminal', () => {
  it('colours for a person only: not in a pipe, not under NO_COLOR, not on a dumb terminal', () => {
    const painted = (isTTY: boolean, env: NodeJS.ProcessEnv = {}): boolean =>
      systemTerminal(surroundings(isTTY, env).given).paint('red', 'x') !== 'x'
    assert.equal(painted(true), true)
    assert.equal(painted(true, { NO_COLOR: '' }), true)
    assert.equal(painted(true, { NO_COLOR: '1' }), false)
    assert.equal(painted(true, { TERM: 'dumb' }), false)
    assert.equal(painted(false, { FORCE_COLOR: '1' }), false)
  })

  it('gives a width to a terminal and none to a pipe', () => {
    assert.equal(systemTerminal(surroundings(true).given).columns, 40)
    assert.equal(systemTerminal(surroundings(false).given).columns, null)
  })

  it('lets no foreign text move the cursor or forge a line', () => {
    assert.equal(printable('a\nb\tc \u001b[2Jd\u0007 \u009b1m'), 'a b c \ufffd[2Jd\ufffd \ufffd1m')
  })

  it('lets no foreign text turn the reading direction', () => {
    assert.equal(printable('exe.\u202egnp\u202c \u2066x\u2069 \u200f'), 'exe.\ufffdgnp\ufffd \ufffdx\ufffd \ufffd')
    assert.equal(printable('שלום مرحبا 👩\u200d🚀'), 'שלום مرحبا 👩\u200d🚀', 'text in any language stays')
  })

  it('prints what JSON leaves raw as escapes, which parse to the same', () => {
    const { given, written } = surroundings(true)
    const value = { text: 'a\u001b[2J\u009b2J\u007f\u202e日本' }
    systemTerminal(given).print(JSON.stringify(value))
    assert.equal(written.join(''), '{"text":"a\\u001b[2J\\u009b2J\\u007f\\u202e日本"}\n')
    assert.deepEqual(JSON.parse(written.join('')), value)
  })

  it('measures and cuts text by the cells it takes', () => {
    assert.equal(clip('日本語のエラー', 7), '日本語…')
    assert.equal(clip('日本語のエラー', 8), '日本語…')
    assert.equal(clip('👩\u200d🚀👍🏽ok', 6), '👩\u200d🚀👍🏽ok')
    assert.equal(clip('👩\u200d🚀👍🏽okay', 5), '👩\u200d🚀👍🏽…')
    assert.equal(clip('e\u0301e\u0301e\u0301', 3), 'e\u0301e\u0301e\u0301')
    const columns = [{ title: 'ERROR' }, { title: 'N' }]
    const rows = [
      ['日本語', '1'],
      ['oops', '2'],
    ]
    const { given } = surroundings(false)
    assert.deepEqual(tableLines(systemTerminal(given), columns, rows), ['ERROR   N', '日本語  1', 'oops    2'])
  })

  it('names the worker once to a person', () => {
    const { given, written } = surroundings(true, { NO_COLOR: '1' })
    const log = openLog(systemTerminal(given), systemClock, { level: 'info' })
    log.info('Worker starting', { worker_id: 'w1' })
    log.info('Job started', { worker_id: 'w1', job_id: 'J1' })
    assert.deepEqual(
      written.map((line) => line.slice(19)),
      ['Worker starting worker_id=w1\n', 'Job started job_id=J1\n'],
    )
  })

  it('logs readable lines to a person, JSON to a pipe or when told', () => {
    const logged = (isTTY: boolean, json?: true): string => {
      const { given, written } = surroundings(isTTY, { NO_COLOR: '1' })
      const log = openLog(systemTerminal(given), systemClock, { json, level: 'info' })
      log.debug('unheard')
      log.warn('Job failed', { job_id: 'J1', error: 'no\nluck' })
      return written.join('')
    }
    assert.match(logged(true), /^\d\d:\d\d:\d\d\.\d{3} WARN {2}Job failed job_id=J1 error=no luck\n$/)
    for (const line of [logged(false), logged(true, true)]) {
      const { time, ...rest } = JSON.parse(line)
      assert.match(time, /^\d{4}-.*Z$/)
      assert.deepEqual(rest, { level: 'warn', msg: 'Job failed', job_id: 'J1', error: 'no\nluck' })
    }
  })
})
