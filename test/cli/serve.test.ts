import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseTokens } from '../../src/cli/commands/serve.ts'
import { runCli } from './in-process.ts'
import { JOBS, MAIN, Running, temporaryFolder } from './run.ts'

const TOKEN = 'a-token-of-some-length'

async function urlOf(running: Running): Promise<string> {
  const said = /"url":"([^"]+)"/
  await running.said(said)
  return said.exec(running.output)?.[1] ?? assert.fail()
}

describe('millrace serve', () => {
  it('serves the API of a store until it is told to stop', async (t) => {
    const folder = await temporaryFolder(t)
    const engine = `sqlite:${folder}/jobs.db`
    const args = ['serve', JOBS, '--engine', engine, '--port', '0', '--json']
    const running = new Running(MAIN, args, {})
    t.after(() => running.child.kill('SIGKILL'))
    const url = await urlOf(running)
    const session = await fetch(`${url}/api/v1/session`)
    assert.equal(session.status, 200)
    const body = JSON.stringify({ type: 'greet', payload: {} })
    const wrong = await fetch(`${url}/api/v1/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    assert.equal(wrong.status, 400, 'the payload is checked by what the module defines')
    const stream = await fetch(`${url}/api/v1/events`)
    await stream.body?.getReader().read()
    running.child.kill('SIGTERM')
    const { code, err } = await running.ended
    assert.deepEqual([code, err], [0, ''])
  })

  it('asks for the tokens that the environment names, and tells them to nobody', async (t) => {
    const folder = await temporaryFolder(t)
    const args = ['serve', '--engine', `sqlite:${folder}/jobs.db`, '--port', '0', '--json', '--host', '0.0.0.0']
    const running = new Running(MAIN, [...args, '--log-level', 'debug'], {
      env: { MILLRACE_TOKENS: `viewer/ann:${TOKEN}  operator:${TOKEN}-2` },
    })
    t.after(() => running.child.kill('SIGKILL'))
    const url = (await urlOf(running)).replace('0.0.0.0', '127.0.0.1')
    assert.equal((await fetch(`${url}/api/v1/session`)).status, 401)
    const session = await fetch(`${url}/api/v1/session`, { headers: { authorization: `Bearer ${TOKEN}` } })
    const { who, role } = JSON.parse(await session.text())
    assert.deepEqual([who, role], ['ann', 'viewer'])
    running.child.kill('SIGINT')
    const { code, out, err } = await running.ended
    assert.equal(code, 0)
    assert.ok(!`${out}${err}`.includes(TOKEN))
  })

  it('refuses to be open to everyone, and says how to be', async (t) => {
    const folder = await temporaryFolder(t)
    const engine = ['--engine', `sqlite:${folder}/jobs.db`, '--port', '0']
    const open = await runCli(['serve', ...engine, '--host', '0.0.0.0'])
    assert.equal(open.code, 2)
    assert.match(open.err, /give tokens.*ERR_OPTION_INVALID/)
    for (const token of [
      'nonsense-that-is-secret',
      'owner:nonsense-that-is-secret',
      'viewer:nonsense',
      'viewer:',
      '',
      ' ',
    ]) {
      const { code, err } = await runCli(['serve', ...engine, '--token', token])
      assert.equal(code, 2, err)
      assert.ok(!err.includes('nonsense'), err)
    }
    const memory = await runCli(['serve', '--engine', 'memory:', '--port', '0'])
    assert.deepEqual([memory.code, /ERR_UNSUPPORTED/.test(memory.err)], [2, true])
  })

  it('names the metrics by the given prefix, also in start', async (t) => {
    const folder = await temporaryFolder(t)
    const engine = ['--engine', `sqlite:${folder}/jobs.db`, '--port', '0', '--json']
    const greeted = await runCli(['enqueue', 'greet', '{"name":"Ada"}', '--jobs', JOBS, ...engine.slice(0, 2)])
    assert.equal(greeted.code, 0, greeted.err)
    for (const command of ['start', 'serve']) {
      const running = new Running(MAIN, [command, JOBS, ...engine, '--metrics-prefix', 'ruvbot_worker_'], {})
      t.after(() => running.child.kill('SIGKILL'))
      const text = await (await fetch(`${await urlOf(running)}/metrics`)).text()
      for (const name of ['jobs_total', 'jobs_active', 'job_duration_seconds', 'queue_depth']) {
        assert.ok(text.includes(`# TYPE ruvbot_worker_${name} `), text)
      }
      assert.match(text, /ruvbot_worker_queue_depth\{type="greet",state="waiting",engine="sqlite"\} [01]/)
      assert.doesNotMatch(text, /^millrace_/m)
      running.child.kill('SIGTERM')
      assert.equal((await running.ended).code, 0)
    }
  })

  it('refuses a prefix that Prometheus would refuse, and one without metrics', async () => {
    for (const args of [
      ['serve', '--metrics-prefix', 'my-app_'],
      ['start', '--metrics-prefix', '1st'],
      ['work', JOBS, '--metrics-prefix', 'my-app_', '--metrics-port', '0'],
      ['start', '--no-http', '--metrics-prefix', 'mine_'],
      ['work', JOBS, '--metrics-prefix', 'mine_'],
      ['work', JOBS, '--metrics-port', 'many'],
      ['work', JOBS, '--metrics-host', '127.0.0.1'],
    ]) {
      const { code, err } = await runCli(args)
      assert.deepEqual([code, /ERR_OPTION_INVALID/.test(err)], [2, true], `${args.join(' ')}: ${err}`)
    }
  })

  it('refuses what only the HTTP API uses where there is none, and not what the environment has for other processes', async () => {
    for (const given of [
      ['--port', '0'],
      ['--host', '127.0.0.1'],
      ['--token', 'admin:secret-1'],
      ['--allow-host', 'jobs.example'],
      ['--trust-user-header', 'x-forwarded-user'],
      ['--public-health'],
      ['--metrics-prefix', 'mine_'],
      ['--tables', 'jobs'],
      ['--tables-url', 'postgres://127.0.0.1/media'],
    ]) {
      const { code, err } = await runCli(['start', '--no-http', ...given])
      assert.equal(code, 2, given.join(' '))
      assert.match(err, new RegExp(`--no-http serves nothing; leave out ${given[0]} \\(ERR_OPTION_INVALID\\)`))
    }
    const env = { MILLRACE_TOKENS: 'admin:secret-1', MILLRACE_TABLES: 'jobs' }
    const { err } = await new Running(MAIN, ['start', '--no-http', '--types', 'greet'], { env }).ended
    assert.match(err, /--types chooses among jobs/)
  })

  it('reads tokens with and without a name', () => {
    assert.deepEqual(parseTokens(['viewer:abc operator/bob@x:d:e', ' admin:f ']), [
      { role: 'viewer', who: 'viewer', token: 'abc' },
      { role: 'operator', who: 'bob@x', token: 'd:e' },
      { role: 'admin', who: 'admin', token: 'f' },
    ])
  })
})
