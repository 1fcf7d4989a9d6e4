import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { DEPLOY, drainMsOf, INSTALLED, readDeployed, STOP_EXTRA_MS, startDeployed, stopInJob } from './deployed.ts'

interface App {
  readonly script: string
  readonly args: string
  readonly kill_timeout: number
  readonly stop_exit_codes: readonly number[]
}

const ecosystem: { apps: readonly App[] } = createRequire(import.meta.url)(join(DEPLOY, 'ecosystem.config.cjs'))
const [app] = ecosystem.apps
const unit = readDeployed('millrace-worker.service')
const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

/** The arguments after the command line's own file: what the supervisor's file really asks for. */
function argumentsOf(command: string): readonly string[] {
  const [, after = ''] = command.split(`${INSTALLED} `)
  return after.split(' ')
}

/** Runs those arguments on the example's jobs, stops it in the middle of a job within the grace, and says how it went. */
async function stopped(t: TestContext, args: readonly string[], signal: NodeJS.Signals, graceMs: number) {
  assert.ok(graceMs > drainMsOf(args) + STOP_EXTRA_MS, `${graceMs} ms is too short`)
  const deployed = await startDeployed(t, args)
  const { code, state, tookMs } = await stopInJob(deployed, () => deployed.running.child.kill(signal))
  assert.ok(tookMs < graceMs)
  return { code, state }
}

// X125 B164
test('pm2 waits longer than the drain, and its SIGINT lets the running job finish', async (t) => {
  assert.ok(app)
  assert.equal(app.kill_timeout, 40_000)
  assert.equal(app.script, INSTALLED)
  const args = argumentsOf(`${app.script} ${app.args}`)
  assert.deepEqual(args, ['work', 'jobs.ts', '--drain', '30s'])
  const { code, state } = await stopped(t, args, 'SIGINT', app.kill_timeout)
  assert.deepEqual([code, state], [0, 'completed'])
  assert.deepEqual(app.stop_exit_codes, [code])
})

// X125 B164
test('systemd waits longer than the drain, and its SIGTERM lets the running job finish', async (t) => {
  assert.equal(setting('TimeoutStopSec'), '40')
  assert.equal(setting('KillSignal'), 'SIGTERM')
  const args = argumentsOf(setting('ExecStart'))
  assert.deepEqual(args, ['work', 'jobs.ts', '--drain', '30s', '--json'])
  assert.deepEqual(await stopped(t, args, 'SIGTERM', 40_000), { code: 0, state: 'completed' })
})
