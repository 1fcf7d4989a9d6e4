import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { schedulesOf } from '../../src/engine/capability-checks.ts'
import { runCli } from './in-process.ts'
import { FIXTURES, JOBS, jsonLines, startMillrace, temporaryFolder, until } from './run.ts'

async function store(t: TestContext) {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const said = (...args: string[]) => runCli([...args, '--engine', url])
  const cli = async (...args: string[]) => {
    const { code, out, err } = await said(...args)
    assert.deepEqual([err, code], ['', 0], args.join(' '))
    return out
  }
  const json = async (...args: string[]) => jsonLines(await cli(...args, '--json'))
  return { url, said, cli, json }
}

const NIGHTLY = ['schedules', 'add', 'nightly', 'greet', '0 3 * * *', '{"name":"Ada"}']

describe('millrace schedules', () => {
  // A128 A138 A139
  it('adds, lists, shows, reschedules, pauses, resumes and removes', async (t) => {
    const { cli, json, said } = await store(t)
    await cli('migrate')
    assert.equal(await cli('schedules'), 'No schedules.\n')
    const more = ['--tz', 'Europe/Berlin', '--limit', '5', '--missed', 'skip', '--priority', '2', '--tenant', 'acme']
    assert.match(await cli(...NIGHTLY, ...more), /^nightly runs next at \d{4}-\d\d-\d\dT0[12]:00:00\.000Z\n$/)
    const table = await cli('schedules')
    assert.match(table, /^NAME +TYPE +CRON +ZONE +NEXT +LAST +RUNS +SKIPPED +MISSED\n/)
    assert.match(table, /nightly +greet +0 3 \* \* \* +Europe\/Berlin +in \d+[hms] +- +0\/5 +0 +0\n/)
    assert.doesNotMatch(table, /Ada/)
    const shown = await cli('schedules', 'show', 'nightly')
    assert.match(shown, /if missed +skip\noverlap +skip\noptions +\{"priority":2,"tenant":\{"orgId":"acme"\}\}/)
    assert.doesNotMatch(shown, /Ada/)
    assert.match(await cli('schedules', 'show', 'nightly', '--payload'), /payload +\{"name":"Ada"\}/)
    const [moved] = await json('schedules', 'reschedule', 'nightly', '*/5 * * * *')
    assert.partialDeepStrictEqual(moved, { name: 'nightly', cron: '*/5 * * * *', tz: 'Europe/Berlin', overdue: false })
    assert.equal('payload' in Object(moved), false)
    assert.equal(await cli('schedules', 'pause', 'nightly'), 'nightly is paused\n')
    assert.match(await cli('schedules', 'resume', 'nightly'), /runs next at/)
    assert.match(await cli('schedules', 'remove', 'nightly', '--dry-run'), /would be removed; nothing was changed/)
    assert.equal((await json('schedules')).length, 1)
    assert.deepEqual(await json('schedules', 'remove', 'nightly'), [{ name: 'nightly', removed: true, dryRun: false }])
    const audit = await json('audit')
    assert.deepEqual(
      audit.map(({ action, subject, type }) => [action, subject, type]),
      ['remove', 'resume', 'pause', 'change', 'change'].map((act) => [`schedule-${act}`, 'nightly', 'greet']),
    )
    assert.partialDeepStrictEqual(audit[3], { before: { cron: '0 3 * * *' }, after: { cron: '*/5 * * * *' } })
    assert.doesNotMatch(JSON.stringify(audit), /Ada/)
    for (const act of [['pause'], ['resume'], ['run'], ['remove'], ['show'], ['preview']]) {
      const { code, err } = await said('schedules', ...act, 'nightly')
      assert.equal(err, 'error: Unknown scheduled job: nightly (ERR_SCHEDULE_UNKNOWN)\n', act[0])
      assert.equal(code, 1)
    }
  })

  it('runs one now', async (t) => {
    const { cli, json } = await store(t)
    await cli(...NIGHTLY)
    const [run] = await json('schedules', 'run', 'nightly')
    assert.partialDeepStrictEqual(run, { name: 'nightly', status: 'enqueued' })
    assert.partialDeepStrictEqual(await json('job', String(run?.id), '--payload'), [
      { type: 'greet', payload: '{"name":"Ada"}' },
    ])
    assert.partialDeepStrictEqual((await json('audit'))[0], {
      action: 'schedule-run',
      subject: 'nightly',
      jobId: run?.id,
    })
  })

  it('previews a cron text without a store, and a stored schedule by its name', async (t) => {
    const { cli, json, url } = await store(t)
    const runs = await json('schedules', 'preview', '0 12 * * *', '--tz', 'Asia/Kolkata')
    assert.equal(runs.length, 10)
    assert.match(String(runs[0]?.at), /T06:30:00\.000Z$/)
    await cli(...NIGHTLY)
    assert.equal((await cli('schedules', 'preview', 'nightly', '--count', '3')).split('\n').length, 4)
    assert.ok(url)
  })

  it('refuses what could never run', async (t) => {
    const { said } = await store(t)
    const wrong: readonly (readonly [args: readonly string[], says: RegExp])[] = [
      [['schedules', 'add', 'x', 'greet', '99 * * * *'], /'99' is no minute.*ERR_OPTION_INVALID/],
      [[...NIGHTLY, '--tz', 'Mars/Base'], /no time zone.*ERR_OPTION_INVALID/],
      [[...NIGHTLY, '--start', 'tomorrow'], /'start' is 'tomorrow'.*zone.*ERR_OPTION_INVALID/],
      [[...NIGHTLY, '--missed', 'some'], /'some' is invalid.*ERR_OPTION_INVALID/],
      [['schedules', 'add', 'x', 'greet', '* * * * *', '{"name":'], /not JSON.*ERR_PAYLOAD_NOT_JSON/],
      [['schedules', 'add', 'x', 'greet', '* * * * *', '{}', '--jobs', JOBS], /ERR_PAYLOAD_INVALID/],
      [['schedules', 'preview', '* * *'], /3 fields.*ERR_OPTION_INVALID/],
      [['schedules', 'preview', '* * * * *', '--count', '0'], /'count' is 0.*from 1 to 1000.*ERR_OPTION_INVALID/],
      [['schedules', 'preview', '* * * * *', '--count', '1001'], /'count' is 1001.*ERR_OPTION_INVALID/],
    ]
    for (const [args, says] of wrong) {
      const { code, err } = await said(...args)
      assert.match(err, says, args.join(' '))
      assert.equal(code, 2)
    }
  })

  it('marks what is overdue, and so does the doctor', async (t) => {
    const { cli, said, url } = await store(t)
    await cli(...NIGHTLY)
    const mill = await open(url)
    t.after(() => mill.close())
    const port = schedulesOf(mill.engine)
    const record = (await port.find('nightly')) ?? assert.fail()
    const body = JSON.stringify({ ...JSON.parse(record.body), nextAtMs: Date.now() - 7_200_000 })
    await port.save({ ...record, revision: 'late', body }, record.revision, [])
    assert.match(await cli('schedules'), /OVERDUE 2h/)
    const { code, out } = await said('doctor')
    assert.match(out, /schedules +1 schedule overdue, 'nightly' by 2 h/)
    assert.equal(code, 1)
  })
})

describe('millrace keep', () => {
  // A136 A137
  it('registers what the modules declare, fires what is due, and stops on SIGTERM with exit 0', async (t) => {
    const { url, json } = await store(t)
    const keeper = startMillrace(t, [
      'keep',
      join(FIXTURES, 'scheduled.ts'),
      '--interval',
      '200ms',
      '--engine',
      url,
      '--json',
    ])
    await keeper.said('Schedule registered')
    await keeper.said('Schedule fired')
    await until(async () => (await json('jobs')).length > 0)
    keeper.child.kill('SIGTERM')
    const { code, out, err } = await keeper.ended
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /"Schedule no longer kept here"/)
    assert.match(out, /"Keeper stopped"/)
    assert.equal((await json('schedules'))[0]?.name, 'beat')
  })
})
