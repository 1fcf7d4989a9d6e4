import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { jsonLines, MAIN, millrace, ROOT, Running, startMillrace, temporaryFolder } from './run.ts'

describe('a command as a process', () => {
  it('reads a payload from standard input, and finds the store by its environment', async (t) => {
    const env = { MILLRACE_ENGINE: `sqlite:${await temporaryFolder(t)}/jobs.db` }
    const added = await millrace(['enqueue', 'import', '-', '--json'], { env, input: '{"rows":[1,2,3]}\n' })
    assert.equal(added.code, 0, added.err)
    const id = String(jsonLines(added.out)[0]?.id)
    const shown = await millrace(['job', id, '--payload', '--json'], { env })
    assert.equal(jsonLines(shown.out)[0]?.payload, '{"rows":[1,2,3]}')
    const elsewhere = await millrace(['job', id, '--engine', env.MILLRACE_ENGINE.replace('jobs', 'other')], { env })
    assert.match(elsewhere.err, /ERR_SCHEMA_MISSING/)
  })

  it('refuses standard input that is not UTF-8, rather than storing another payload', async (t) => {
    const env = { MILLRACE_ENGINE: `sqlite:${await temporaryFolder(t)}/jobs.db` }
    const input = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff]), Buffer.from('"}')])
    const { code, err } = await millrace(['enqueue', 'greet', '-'], { env, input })
    assert.match(err, /not UTF-8.*ERR_PAYLOAD_NOT_JSON/)
    assert.equal(code, 2)
  })

  it('uses ./millrace.db by default, and exits 0, 1 or 2', async (t) => {
    const cwd = await temporaryFolder(t)
    assert.equal((await millrace(['enqueue', 'greet', '{}'], { cwd })).code, 0)
    const stats = await millrace(['stats', '--engine', 'sqlite:millrace.db', '--json'], { cwd })
    assert.partialDeepStrictEqual(jsonLines(stats.out), [{ type: 'greet', ready: 1 }])
    assert.equal((await millrace(['job', 'unknown'], { cwd })).code, 1)
    const wrong = await millrace(['job'], { cwd })
    assert.equal(wrong.code, 2)
    assert.match(wrong.err, /^error: missing required argument 'id'.*\n$/)
    const nothing = await millrace([], { cwd })
    assert.equal(nothing.code, 2)
    assert.match(nothing.err, /^Usage: millrace/)
  })

  it('prints no colours into a pipe', async (t) => {
    const cwd = await temporaryFolder(t)
    await millrace(['enqueue', 'greet', '{}'], { cwd })
    const { out } = await millrace(['jobs'], { cwd, env: { FORCE_COLOR: '3' } })
    assert.match(out, /queued/)
    assert.ok(!out.includes('\u001b'))
  })

  it('says on its first line which Node it needs, on an older one', async (t) => {
    const { engines, bin } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const launcher = join(ROOT, bin.millrace)
    assert.doesNotMatch(await readFile(launcher, 'utf8'), /^import /m, 'a static import would be read before the check')
    const on = async (version: string) => {
      const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
      const file = join(await temporaryFolder(t), 'pretend.mjs')
      await writeFile(file, pretend)
      const running = new Running('--import', [file, launcher, '--version'])
      return running.ended
    }
    for (const old of ['20.20.2', '22.99.0', '24.14.9']) {
      const { code, out, err } = await on(old)
      assert.deepEqual([code, out], [2, ''])
      assert.match(
        err,
        new RegExp(`^error: Millrace needs Node 24\\.15 or newer, and this is Node ${old}\\.[^\\n]*\\n$`),
      )
    }
    assert.equal(engines.node, '>=24.15', 'bin/millrace.js checks for the same version')
    for (const enough of ['24.15.0', '25.0.0']) assert.match((await on(enough)).out, /^\d+\.\d+\.\d+\n$/)
  })

  it('ends at SIGHUP without a clean stop, as its help says', async (t) => {
    const running = startMillrace(t, ['serve', '--port', '0', '--json'], { cwd: await temporaryFolder(t) })
    await running.said('"url"')
    running.child.kill('SIGHUP')
    const { code, signal } = await running.ended
    assert.deepEqual([code, signal], [null, 'SIGHUP'])
  })

  it('is content when its reader has read enough', async (t) => {
    const cwd = await temporaryFolder(t)
    await millrace(['enqueue', 'greet', '{}'], { cwd })
    const child = spawn(process.execPath, [MAIN, 'jobs'], { cwd })
    child.stdout.destroy()
    let err = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    const [code] = await once(child, 'close')
    assert.equal(err, '')
    assert.equal(code, 0)
  })
})
