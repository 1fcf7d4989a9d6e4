import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { existingTables, jobTables } from '../fixtures/job-tables.ts'
import { runCli } from './in-process.ts'
import { jsonLines, ROOT, Running, startMillrace, temporaryFolder, until } from './run.ts'

const REAPER = join(ROOT, 'scripts/reaper.ts')
/** Nothing listens there. */
const AWAY = ['--engine', 'postgres://127.0.0.1:1/x']

function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL')
  } catch {
    // All of it has ended already.
  }
}

describe('scripts/reaper.ts', () => {
  // E04 E05 E32
  test('is a service that reaps again and again, and stops at SIGTERM', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const args = ['--engine', tables.engineUrl]
    const running = new Running(REAPER, args, { env: { REAPER_INTERVAL_SEC: '0.05' } })
    t.after(() => running.child.kill('SIGKILL'))
    await running.said('"job_id":"a"')
    await tables.expired('asr_jobs', '5', { attempt_count: 3 })
    await running.said('"job_id":"5"')
    running.child.kill('SIGTERM')
    const { code, out } = await running.ended
    assert.equal(code, 0)
    assert.match(out, /Reaper started.*"interval_sec":0.05|"interval_sec":0.05.*Reaper started/)
    assert.match(out, /Reaper stopped/)
    assert.equal((await tables.row('jobs', 'a')).status, 'queued')
    assert.equal((await tables.row('asr_jobs', '5')).status, 'failed')
  })

  // E05 E06 E08
  test('npm run start:reaper starts it; with --once it runs once and prints what it did', async (t) => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    assert.match(scripts['start:reaper'], /scripts\/reaper\.ts$/)
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a')
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const child = spawn('npm', ['run', '--silent', 'start:reaper', '--', '--once'], {
      cwd: ROOT,
      env: { ...env, DATABASE_URL: tables.engineUrl },
      stdio: ['ignore', 'pipe', 'inherit'],
      // A group of its own: npm's child must not outlive a test that fails.
      detached: true,
    })
    t.after(() => endGroup(child.pid))
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
    assert.equal(code, 0)
    assert.match(out, /^jobs a requeued \(start 1, locked by worker-1\)\n1 requeued, 0 failed\.$/m)
  })

  // E44
  test('lives on while the database is away', async (t) => {
    const tables = await jobTables(t)
    const away = new URL(tables.engineUrl)
    away.port = '1'
    const running = new Running(REAPER, ['--engine', away.href, '--tables', 'jobs'], {
      env: { REAPER_INTERVAL_SEC: '0.01' },
    })
    t.after(() => running.child.kill('SIGKILL'))
    await running.said(/Reaper run failed[\s\S]+Reaper run failed/)
    running.child.kill('SIGTERM')
    assert.equal((await running.ended).code, 0)
  })

  test('says what is missing or wrong, and exits 2', async () => {
    const cases: readonly (readonly [readonly string[], Record<string, string>, RegExp])[] = [
      [['--once'], { DATABASE_URL: '' }, /give a postgres:\/\/ URL/],
      [['--twice'], {}, /--twice/],
      [['--once', ...AWAY], { REAPER_INTERVAL_SEC: 'soon' }, /REAPER_INTERVAL_SEC is 'soon'/],
    ]
    const ended = await Promise.all(cases.map(([args, env]) => new Running(REAPER, args, { env }).ended))
    for (const [index, [, , pattern]] of cases.entries()) {
      assert.equal(ended[index]?.code, 2)
      assert.match(ended[index]?.err ?? '', pattern)
    }
  })
})

describe('millrace … --tables', () => {
  // E01 E27 E28
  test('migrate completes existing tables, then reap requeues and fails their expired rows', async (t) => {
    const tables = await existingTables(t)
    const engine = ['--engine', tables.engineUrl]
    const dry = await runCli(['migrate', '--tables', 'jobs,asr_jobs', '--dry-run', ...engine])
    assert.match(dry.out, /ALTER TABLE .*"asr_jobs"[\s\S]+nothing was changed/, dry.err)
    const early = await runCli(['reap', '--tables', 'jobs', ...engine])
    assert.equal(early.code, 1)
    assert.match(early.err, /millrace migrate --tables jobs/)
    const done = await runCli(['migrate', '--tables', 'jobs,asr_jobs', ...engine])
    assert.equal(done.code, 0, done.err)
    const again = await runCli(['migrate', '--tables', 'jobs,asr_jobs', ...engine])
    assert.match(again.out, /nothing is missing/)
    await tables.expired('jobs', 'a')
    await tables.expired('asr_jobs', '7', { attempt_count: 3 })
    const reaped = await runCli(['reap', '--tables', 'jobs,asr_jobs', '--json', ...engine])
    assert.deepEqual(jsonLines(reaped.out), [
      { table: 'jobs', id: 'a', action: 'requeued', attempt: 1, lockedBy: 'worker-1' },
      { table: 'asr_jobs', id: '7', action: 'failed', attempt: 3, lockedBy: 'worker-1' },
      { requeued: 1, failed: 1 },
    ])
    await until(async () => (await tables.events()).length === 2)
    assert.deepEqual(
      (await tables.events()).map(({ job_id, type }) => [job_id, type]),
      [
        ['a', 'reaper:requeued'],
        ['7', 'reaper:failed(timeout)'],
      ],
    )
  })

  // E13..E24
  test('migrate prints SQL that can be run, for existing tables and for a new one, and creates only with --new', async (t) => {
    const tables = await existingTables(t)
    const adopting = ['migrate', '--tables', 'jobs,asr_jobs', '--engine', tables.engineUrl]
    await tables.pool.query((await runCli([...adopting, '--dry-run'])).out)
    assert.match((await runCli(adopting)).out, /jobs, asr_jobs: nothing is missing/)
    const clips = ['migrate', '--tables', 'clips', '--engine', tables.engineUrl]
    const refused = await runCli(clips)
    assert.deepEqual(
      [refused.code, /create it with 'millrace migrate --tables clips --new'/.test(refused.err)],
      [1, true],
    )
    const printed = await runCli([...clips, '--new', '--dry-run'])
    assert.match(printed.out, /CREATE TABLE IF NOT EXISTS .*"clips" \([\s\S]+-- nothing was changed/, printed.err)
    await assert.rejects(tables.pool.query('select * from clips'), /does not exist/)
    await tables.pool.query(printed.out)
    assert.match((await runCli([...clips, '--new'])).out, /clips: nothing is missing/)
  })

  test('options that do not fit together are refused, each with what to do', async () => {
    const every = ['reap', '--tables', 'jobs', '--every']
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['reap', '--tables', 'jobs', '--engine', 'memory:'], /give a postgres:\/\/ URL/],
      [['reap', '--tables', 'jobs,,asr_jobs', ...AWAY], /must be names of tables/],
      [['reap', '--every', '1s', ...AWAY], /run 'millrace keep'/],
      [['reap', '--tables', 'jobs', '--metrics-port', '0', ...AWAY], /add --tables and --every/],
      [['reap', '--tables', 'jobs', '--jobs', 'jobs.ts', ...AWAY], /leave it out with --tables/],
      [[...every, 'often', ...AWAY], /must be a duration/],
      [[...every, '0s', ...AWAY], /give an interval such as 60s/],
      [[...every, '--engine', 'memory:'], /give a postgres:\/\/ URL/],
      [['doctor', '--tables', 'jobs', '--deep', ...AWAY], /leave out --deep/],
      [['migrate', '--new', ...AWAY], /name them with --tables/],
    ]
    for (const [args, pattern] of cases) {
      const { code, err } = await runCli(args)
      assert.deepEqual([args.join(' '), code], [args.join(' '), 2])
      assert.match(err, pattern)
    }
  })

  test('serve shows tables of another database than the engine', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'lost')
    const cwd = await temporaryFolder(t)
    const shown = ['--tables', 'jobs,asr_jobs', '--tables-url', tables.engineUrl]
    const running = startMillrace(t, ['serve', '--port', '0', '--json', ...shown], { cwd })
    await running.said(/"url":"http/)
    const url = String(jsonLines(running.output).find((line) => line.url !== undefined)?.url)
    const get = async (path: string) => JSON.parse(await (await fetch(`${url}/api/v1/${path}`)).text())
    assert.equal((await get('session')).facets.tables, true)
    const answer = await get('job-tables')
    assert.deepEqual(
      answer.tables.map((one: { table: string; rows: { stuck: number } }) => [one.table, one.rows.stuck]),
      [
        ['jobs', 1],
        ['asr_jobs', 0],
      ],
    )
    running.child.kill('SIGTERM')
    assert.equal((await running.ended).code, 0)
  })
})
