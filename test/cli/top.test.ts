import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { extensions } from '../../bin/extensions.ts'
import { run } from '../../src/cli/program.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { runCli } from './in-process.ts'
import { jsonLines, MAIN, startMillrace, temporaryFolder } from './run.ts'

const ESC = '\u001b'
/** Gives a program a terminal; the options are those of Linux. */
const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0

async function storeWithJobs(folder: string): Promise<readonly string[]> {
  const engine = ['--engine', `sqlite:${folder}/jobs.db`]
  for (const type of ['greet', 'greet', 'bill'])
    assert.equal((await runCli(['enqueue', type, '{}', ...engine])).code, 0)
  return engine
}

/** A terminal of this size that remembers what was drawn. */
function screenOf(columns: number, rows: number): { readonly terminal: Terminal; drawn(): string } {
  let drawn = ''
  const out = Object.assign(new PassThrough(), { columns, rows })
  out.on('data', (text) => {
    drawn += String(text)
  })
  const print = (line: string): void => void out.write(`${line}\n`)
  const terminal = { out, columns, print, complain: print, paint: (_: unknown, text: string) => text }
  return {
    terminal: { ...terminal, flush: async () => {}, outliveReader: () => {}, lostReader: false },
    drawn: () => drawn,
  }
}

describe('top', () => {
  it('prints one look where there is no terminal', async (t) => {
    const engine = await storeWithJobs(await temporaryFolder(t))
    const { code, out, err } = await runCli(['top', ...engine])
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /^greet +2 +0 +0 +0 +0 +- +-$/m)
    assert.match(out, /oldest waiting: .*greet 01/)
    assert.ok(!out.includes(ESC) && !out.includes('q or Ctrl-C'))
  })

  it('draws in place on a terminal, and leaves the screen as it was', async (t) => {
    const engine = await storeWithJobs(await temporaryFolder(t))
    const { terminal, drawn } = screenOf(80, 24)
    assert.equal(await run(['top', '--times', '3', '--interval', '100ms', ...engine], terminal, extensions), 0)
    const frames = drawn().split(`${ESC}[H`).slice(1)
    assert.equal(frames.length, 3)
    assert.match(frames[0] ?? '', /total +3 .* - +-/)
    assert.match(frames[2] ?? '', /in 0\.0\/s {2}done 0\.0\/s.*total +3 .* 0\.0 +0\.0/s)
    assert.ok(drawn().startsWith(`${ESC}[?1049h`) && drawn().endsWith(`${ESC}[?1049l`))
  })

  it('prints a JSON line per look until Ctrl-C, and ends with 0', async (t) => {
    const folder = await temporaryFolder(t)
    const engine = await storeWithJobs(folder)
    const top = startMillrace(t, ['top', '--json', '--interval', '100ms', ...engine])
    await top.said(/\n.*\n/)
    top.child.kill('SIGINT')
    const { code, out, err } = await top.ended
    assert.deepEqual([code, err], [0, ''])
    const looks = jsonLines(out)
    assert.ok(looks.length >= 2)
    assert.partialDeepStrictEqual(looks[1], {
      types: [
        { type: 'bill', counts: { ready: 1 }, rates: { enqueued: 0 } },
        { type: 'greet', counts: { ready: 2 } },
        { type: '*', counts: { ready: 3 } },
      ],
    })
  })

  it('ends with 0 when q is pressed in a real terminal', { skip: !hasScript }, async (t) => {
    const folder = await temporaryFolder(t)
    const engine = await storeWithJobs(folder)
    const command = [process.execPath, MAIN, 'top', ...engine].join(' ')
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...process.env, TERM: 'xterm', NO_COLOR: '1' },
    })
    t.after(() => child.kill('SIGKILL'))
    let drawn = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const wasShown = drawn.includes('q or Ctrl-C')
      drawn += text
      if (!wasShown && drawn.includes('q or Ctrl-C')) child.stdin.write('q')
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 0, drawn)
    assert.ok(drawn.includes(`${ESC}[?1049l`), 'the screen is given back')
    assert.ok(!drawn.includes(`${ESC}[1m`), 'NO_COLOR is heeded on a terminal too')
  })

  it('refuses a wrong interval and a wrong number of looks', async (t) => {
    const engine = await storeWithJobs(await temporaryFolder(t))
    assert.match((await runCli(['top', '--interval', '1ms', ...engine])).err, /'interval' is 1 ms.*ERR_OPTION_INVALID/)
    assert.equal((await runCli(['top', '--times', '0', ...engine])).code, 2)
  })
})
