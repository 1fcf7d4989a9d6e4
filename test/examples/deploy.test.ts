import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { defineJob, open } from 'millrace'
import { publishedManifest } from '../../scripts/package.ts'
import { MAIN, ROOT, Running, temporaryFolder } from '../cli/run.ts'

const DEPLOY = join(ROOT, 'examples/deploy')
/** Where an installed package has the command line. */
const INSTALLED = join('node_modules/millrace', publishedManifest().bin.millrace ?? '')

interface App {
  readonly script: string
  readonly args: string
  readonly kill_timeout: number
  readonly stop_exit_codes: readonly number[]
}

const ecosystem: { apps: readonly App[] } = createRequire(import.meta.url)(join(DEPLOY, 'ecosystem.config.cjs'))
const [app] = ecosystem.apps
const unit = readFileSync(join(DEPLOY, 'millrace-worker.service'), 'utf8')
const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

/** The arguments after the command line's own file: what the supervisor's file really asks for. */
function argumentsOf(command: string): readonly string[] {
  const [, after = ''] = command.split(`${INSTALLED} `)
  return after.split(' ')
}

/** Runs those arguments on the example's jobs, stops it in the middle of a job, and says how it went. */
async function stopped(t: TestContext, args: readonly string[], signal: NodeJS.Signals) {
  const cwd = await temporaryFolder(t)
  const url = `sqlite:${join(cwd, 'millrace.db')}`
  const mill = await open(url)
  t.after(() => mill.close())
  const { id } = await mill.enqueue(defineJob({ type: 'tidy' }), null)
  const withPath = args.map((arg) => (arg === 'jobs.ts' ? join(DEPLOY, 'jobs.ts') : arg))
  const worker = new Running(MAIN, withPath, { cwd, env: { MILLRACE_ENGINE: url } })
  t.after(() => worker.child.kill('SIGKILL'))
  await worker.said('Job started')
  worker.child.kill(signal)
  const { code } = await worker.ended
  return { code, state: (await mill.job(id))?.state }
}

// X125 B164
test('pm2 waits longer than the drain, and its SIGINT lets the running job finish', async (t) => {
  assert.ok(app)
  assert.equal(app.kill_timeout, 40_000)
  assert.equal(app.script, INSTALLED)
  const args = argumentsOf(`${app.script} ${app.args}`)
  assert.deepEqual(args, ['work', 'jobs.ts', '--drain', '30s'])
  const { code, state } = await stopped(t, args, 'SIGINT')
  assert.deepEqual([code, state], [0, 'completed'])
  assert.deepEqual(app.stop_exit_codes, [code])
})

// X125 B164
test('systemd waits longer than the drain, and its SIGTERM lets the running job finish', async (t) => {
  assert.equal(setting('TimeoutStopSec'), '40')
  assert.equal(setting('KillSignal'), 'SIGTERM')
  const args = argumentsOf(setting('ExecStart'))
  assert.deepEqual(args, ['work', 'jobs.ts', '--drain', '30s', '--json'])
  assert.deepEqual(await stopped(t, args, 'SIGTERM'), { code: 0, state: 'completed' })
})
