import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { runCli } from './in-process.ts'
import { FIXTURES, JOBS, jsonLines, temporaryFolder } from './run.ts'

const COMMANDS = [
  'start',
  'work',
  'enqueue',
  'jobs',
  'job',
  'explain',
  'cancel',
  'stats',
  'migrate',
  'doctor',
  'reap',
  'keep',
  'schedules',
]

describe('the command line', () => {
  it('teaches by examples, in the help of every command', async () => {
    const program = await runCli(['--help'])
    assert.equal(program.code, 0)
    assert.match(program.out, /Exit codes:\n {2}0 {2}done\n {2}1 {2}failed.*\n(?: {5}.*\n)* {2}2 {2}wrong usage/)
    for (const command of COMMANDS) {
      assert.match(program.out, new RegExp(`^ {2}${command} `, 'm'))
      const { code, out, err } = await runCli([command, '--help'])
      assert.equal(code, 0, command)
      assert.match(out, new RegExp(`Examples:\\n {2}.*millrace ${command}`))
      assert.match(out, /--engine <url>.*MILLRACE_ENGINE/s)
      assert.equal(err, '')
    }
  })

  it('answers wrong usage with one line, a code and exit 2', async (t) => {
    const folder = await temporaryFolder(t)
    const engine = ['--engine', `sqlite:${folder}/jobs.db`]
    const enqueue = ['enqueue', 'greet', '{"name":"Ada"}', ...engine]
    const wrong: readonly (readonly [args: readonly string[], says: RegExp])[] = [
      [['nope'], /unknown command 'nope'.*ERR_OPTION_INVALID/],
      [['enqeue'], /unknown command 'enqeue' .Did you mean enqueue.*ERR_OPTION_INVALID/],
      [['dead', 'replya', ...engine], /unknown command 'replya' .Did you mean replay.*ERR_OPTION_INVALID/],
      [['schedules', 'nope', ...engine], /unknown command 'nope'.*ERR_OPTION_INVALID/],
      [['webhooks', 'lst', ...engine], /unknown command 'lst' .Did you mean list.*ERR_OPTION_INVALID/],
      [['dead', 'list', 'nope', ...engine], /too many arguments for 'list'.*ERR_OPTION_INVALID/],
      [['jobs', '--nope'], /unknown option '--nope'.*ERR_OPTION_INVALID/],
      [['job'], /missing required argument 'id'.*ERR_OPTION_INVALID/],
      [['jobs', '--status', 'lost', ...engine], /'lost' is invalid.*queued.*ERR_OPTION_INVALID/],
      [['jobs', '--limit', '0', ...engine], /'limit' is 0.*ERR_OPTION_INVALID/],
      [['jobs', '--limit', 'few', ...engine], /whole number.*ERR_OPTION_INVALID/],
      [['jobs', '--engine', 'carrier-pigeon:'], /names no engine.*sqlite:.*postgres:.*redis:.*kafka:.*ERR_ENGINE_URL/],
      [['jobs', '--engine', 'constructor:'], /names no engine.*ERR_ENGINE_URL/],
      [['jobs', '--engine', 'sqlite:'], /ERR_ENGINE_URL/],
      [['enqueue', 'greet', '{"name":', ...engine], /not JSON.*ERR_PAYLOAD_NOT_JSON/],
      [['enqueue', 'no spaces', '{}', ...engine], /'type' is 'no spaces'.*ERR_OPTION_INVALID/],
      [['enqueue', 'greet', '{}', '--jobs', JOBS, ...engine], /name.*ERR_PAYLOAD_INVALID/],
      [['enqueue', 'absent', '{}', '--jobs', JOBS, ...engine], /'absent'.*known: .*greet.*ERR_TYPE_UNKNOWN/],
      [['enqueue', 'greet', '{}', '--jobs', 'absent.ts', ...engine], /no file 'absent.ts'.*ERR_MODULE_MISSING/],
      [[...enqueue, '--priority', '11'], /'priority' is 11.*1 .first. to 10.*ERR_OPTION_INVALID/],
      [[...enqueue, '--priority', 'high'], /'high' is invalid.*whole number.*ERR_OPTION_INVALID/],
      [[...enqueue, '--attempts', '0'], /'attempts' is 0.*ERR_OPTION_INVALID/],
      [[...enqueue, '--delay', 'soon'], /'soon' is invalid.*duration.*ERR_OPTION_INVALID/],
      [[...enqueue, '--timeout', '0s'], /'timeout' is 0.*ERR_OPTION_INVALID/],
      [[...enqueue, '--at', 'tomorrow'], /'at' is 'tomorrow'.*zone.*ERR_OPTION_INVALID/],
      [[...enqueue, '--at', '2030-13-01T00:00:00Z'], /'at' is .*ERR_OPTION_INVALID/],
      [[...enqueue, '--at', '2030-01-01T00:00:00Z', '--delay', '1s'], /contradict.*ERR_OPTION_INVALID/],
      [[...enqueue, '--key', 'a', '--latest', 'b'], /contradict.*ERR_OPTION_INVALID/],
      [[...enqueue, '--seq', '3'], /add --latest.*ERR_OPTION_INVALID/],
      [[...enqueue, '--tenant', 'acme/a/b'], /'tenant' is 'acme\/a\/b'.*ERR_OPTION_INVALID/],
      [['work', 'absent.ts', ...engine], /no file 'absent.ts'.*ERR_MODULE_MISSING/],
      [['work', join(FIXTURES, 'no-jobs.mjs'), ...engine], /exports no jobs.*ERR_MODULE_INVALID/],
      [['work', join(FIXTURES, 'bare.ts'), ...engine], /no handler for .*'bare'.*ERR_HANDLER_MISSING/],
      [['work', join(FIXTURES, 'twice.ts'), ...engine], /'twin'.*ERR_JOB_DUPLICATE/],
      [['work', JOBS, '--types', 'greet,absent', ...engine], /'absent'.*ERR_TYPE_UNKNOWN/],
      [['work', JOBS, '--types', 'greet,,', ...engine], /commas.*ERR_OPTION_INVALID/],
      [['work', JOBS, '--concurrency', '0', ...engine], /'concurrency' is 0.*ERR_OPTION_INVALID/],
      [['serve', '--port', '99999', ...engine], /'99999' is invalid.*0 to 65535.*ERR_OPTION_INVALID/],
      [['start', JOBS, '--port', '-1', ...engine], /'-1' is invalid.*0 to 65535.*ERR_OPTION_INVALID/],
      [['work', JOBS, '--metrics-port', '99999', ...engine], /'99999' is invalid.*0 to 65535.*ERR_OPTION_INVALID/],
      [['start', '--types', 'greet', ...engine], /name the module.*ERR_OPTION_INVALID/],
      [['start', '--engine', 'memory:'], /keeps its jobs in one process.*ERR_UNSUPPORTED/],
      [['migrate', '--engine', 'memory:'], /nothing to migrate.*ERR_UNSUPPORTED/],
    ]
    for (const [args, says] of wrong) {
      const { code, out, err } = await runCli(args)
      assert.match(err, says)
      assert.match(err, /^error: [^\n]+ \(ERR_[A-Z_]+\)\n$/, args.join(' '))
      assert.equal(code, 2, args.join(' '))
      assert.equal(out, '', args.join(' '))
    }
    // Whatever was refused, nothing was stored.
    if (existsSync(join(folder, 'jobs.db'))) assert.equal((await runCli(['jobs', ...engine])).out, 'No jobs.\n')
  })

  it('answers a failure with exit 1, and never with a stack unless asked', async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'not-a-database.db')
    await writeFile(file, 'These are words, not pages. '.repeat(100))
    const failing: readonly (readonly [args: readonly string[], says: RegExp])[] = [
      [['jobs', '--engine', `sqlite:${folder}/absent.db`], /no Millrace tables.*ERR_SCHEMA_MISSING/],
      [['jobs', '--engine', `sqlite:${file}`], /ERR_STORAGE_NOT_A_DATABASE/],
      [['enqueue', 'greet', '{}', '--engine', `sqlite:${folder}/no/such/folder.db`], /ERR_STORAGE_OPEN/],
      ...[['jobs'], ['enqueue', 'greet', '{}'], ['webhooks', 'list'], ['conversations', 'list']].map(
        (args) =>
          [[...args, '--engine', `sqlite:${folder}`], /is a folder; name a file in it.*ERR_STORAGE_OPEN/] as const,
      ),
    ]
    for (const [args, says] of failing) {
      const { code, err } = await runCli(args)
      assert.match(err, says)
      assert.equal(code, 1, args.join(' '))
      assert.match(err, /^error: [^\n]+ \(ERR_[A-Z_]+\)\n$/)
    }
    assert.equal(existsSync(join(folder, 'absent.db')), false, 'looking must not create a database')
    const { err } = await runCli(['jobs', '--debug', '--engine', `sqlite:${file}`])
    assert.match(err, /^error: .*\n.*\n {4}at /)
  })

  it('lists what a group of commands has when it is called alone', async (t) => {
    const folder = await temporaryFolder(t)
    const engine = ['--engine', `sqlite:${folder}/jobs.db`]
    await runCli(['migrate', ...engine])
    for (const group of ['dead', 'schedules', 'webhooks', 'memories', 'conversations']) {
      assert.deepEqual(await runCli([group, ...engine]), await runCli([group, 'list', ...engine]), group)
    }
    assert.match((await runCli(['webhooks', ...engine])).out, /^No webhooks/)
  })

  it('prints errors as JSON for a machine', async () => {
    const { code, err } = await runCli(['jobs', '--json', '--engine', 'nowhere:'])
    assert.equal(code, 2)
    assert.partialDeepStrictEqual(jsonLines(err), [{ error: { code: 'ERR_ENGINE_URL' } }])
  })

  it('prints its version, as JSON for a machine', async () => {
    const { out } = await runCli(['--version'])
    assert.match(out, /^\d+\.\d+\.\d+\n$/)
    for (const args of [
      ['--json', '--version'],
      ['--version', '--json'],
    ]) {
      const { code, out: line, err } = await runCli(args)
      assert.deepEqual([code, err, jsonLines(line)], [0, '', [{ version: out.trim() }]])
    }
  })

  it('refuses an engine whose jobs would be gone when the command ends', async () => {
    for (const args of [
      ['enqueue', 'greet', '{}'],
      ['jobs'],
      ['stats'],
      ['top'],
      ['cancel', 'x'],
      ['reap'],
      ['doctor'],
    ]) {
      const { code, err } = await runCli([...args, '--engine', 'memory:'])
      assert.match(err, /keeps its jobs in one process.*ERR_UNSUPPORTED/)
      assert.equal(code, 2)
    }
  })
})
