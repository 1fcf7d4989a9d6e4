import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { printFindings } from '../../src/cli/commands/doctor.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import type { Finding } from '../../src/engine/engine.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder } from './run.ts'

const FINDINGS: readonly Finding[] = [
  { severity: 'ok', subject: 'clock', detail: 'right', advice: null },
  { severity: 'warning', subject: 'wal size', detail: 'large', advice: 'Look.' },
  { severity: 'error', subject: 'schema', detail: 'gone\u001b[2J', advice: 'Mend it.' },
]

function printed(json: boolean, paint: Terminal['paint'] = (_style, text) => text): string {
  let out = ''
  const terminal: Terminal = {
    out: new PassThrough(),
    columns: null,
    print: (line) => {
      out += `${line}\n`
    },
    complain: () => {},
    paint,
    flush: async () => {},
    outliveReader: () => {},
    lostReader: false,
  }
  printFindings(terminal, FINDINGS, json)
  return out
}

describe('millrace doctor', () => {
  it('prints every finding with what to do, and a sum', () => {
    const lines = [
      'ok       clock     right',
      'warning  wal size  large',
      '                   → Look.',
      'error    schema    gone�[2J',
      '                   → Mend it.',
      '',
      '1 errors, 1 warnings, 1 in order.',
    ]
    assert.equal(printed(false), `${lines.join('\n')}\n`)
    assert.match(
      printed(false, (style, text) => `<${style}>${text}</>`),
      /<red>error {2}<\/>/,
    )
    assert.deepEqual(jsonLines(printed(true)), FINDINGS)
  })

  it('exits 0 unless something is an error, then 1, also for a program', async (t) => {
    const file = `${await temporaryFolder(t)}/jobs.db`
    const engine = ['--engine', `sqlite:${file}`]
    assert.equal((await runCli(['enqueue', 'greet', '{}', ...engine])).code, 0)
    const sound = await runCli(['doctor', '--deep', '--json', ...engine])
    const findings = jsonLines(sound.out)
    // The disk of this machine may be full or remote; the doctor reports that.
    const errors = findings.filter(({ severity }) => severity === 'error')
    assert.deepEqual(
      errors.filter(({ subject }) => subject !== 'file system' && subject !== 'disk space'),
      [],
    )
    assert.equal(sound.code, errors.length === 0 ? 0 : 1)
    assert.ok(findings.some(({ subject }) => subject === 'integrity'))

    const handle = new DatabaseSync(file)
    handle.exec('DROP INDEX idx_job_queue_claim')
    handle.close()
    const drifted = await runCli(['doctor', ...engine])
    assert.equal(drifted.code, 1)
    assert.match(drifted.out, /^error +schema +the index idx_job_queue_claim is missing\n +→ .*CREATE INDEX/m)
    assert.match(drifted.err, /^error: the doctor found \d+ errors?; .*\(ERR_UNHEALTHY\)\n$/)
    const lines = await runCli(['doctor', '--json', ...engine])
    assert.equal(lines.code, 1)
    assert.ok(jsonLines(lines.out).some(({ severity, subject }) => severity === 'error' && subject === 'schema'))
    assert.partialDeepStrictEqual(jsonLines(lines.err), [{ error: { code: 'ERR_UNHEALTHY' } }])
  })

  it('creates nothing where there is no database', async (t) => {
    const { code, err } = await runCli(['doctor', '--engine', `sqlite:${await temporaryFolder(t)}/absent.db`])
    assert.equal(code, 1)
    assert.match(err, /ERR_SCHEMA_MISSING/)
  })
})
