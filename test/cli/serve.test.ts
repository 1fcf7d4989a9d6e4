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
    for (const token of ['nonsense-that-is-secret', 'owner:nonsense-that-is-secret', 'viewer:nonsense', 'viewer:']) {
      const { code, err } = await runCli(['serve', ...engine, '--token', token])
      assert.equal(code, 2, err)
      assert.ok(!err.includes('nonsense'), err)
    }
    const memory = await runCli(['serve', '--engine', 'memory:', '--port', '0'])
    assert.deepEqual([memory.code, /ERR_UNSUPPORTED/.test(memory.err)], [2, true])
  })

  it('reads tokens with and without a name', () => {
    assert.deepEqual(parseTokens(['viewer:abc operator/bob@x:d:e', ' admin:f ']), [
      { role: 'viewer', who: 'viewer', token: 'abc' },
      { role: 'operator', who: 'bob@x', token: 'd:e' },
      { role: 'admin', who: 'admin', token: 'f' },
    ])
  })
})
