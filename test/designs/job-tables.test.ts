/** The design of the job tables from end to end: its one command on a real Postgres, with workers that die. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openJobTables } from 'millrace/workloads/job-tables'
import { runCli } from '../cli/in-process.ts'
import { FIXTURES, jsonLines, type Running, startMillrace, startScript, until } from '../cli/run.ts'
import { sampleValue } from '../fixtures/exposition.ts'
import { existingTables, type TableFixture } from '../fixtures/job-tables.ts'
import { type TcpProxy, tcpProxy } from '../fixtures/tcp-proxy.ts'

const TABLES = 'jobs,asr_jobs'

/** `millrace reap --tables … --every …` in a process of its own. */
async function startReaper(t: TestContext, engine: string) {
  const every = ['--every', '200ms', '--metrics-port', '0']
  const running = startMillrace(t, ['reap', '--tables', TABLES, ...every, '--engine', engine])
  await running.said(/"url":"[^"]+\/metrics"/)
  const [, url = ''] = /"url":"([^"]+)\/metrics"/.exec(running.output) ?? []
  const get = async (path: string) => {
    const response = await fetch(url + path)
    return { status: response.status, text: await response.text() }
  }
  const statuses = async (): Promise<readonly number[]> =>
    (await Promise.all(['/health', '/health/ready', '/health/live'].map(get))).map(({ status }) => status)
  const lines = (msg: string) =>
    jsonLines(running.output.slice(0, running.output.lastIndexOf('\n'))).filter((line) => line.msg === msg)
  return { running, get, statuses, lines }
}

/** A worker that claims the row and is killed without a word once it has sent a heartbeat. */
async function loseWorker(t: TestContext, tables: TableFixture, [table, id, worker]: readonly string[]) {
  const child = startScript(t, join(FIXTURES, 'table-worker.ts'), [tables.url, table ?? '', id ?? '', worker ?? ''])
  await child.said('claimed')
  await until(async () => {
    const { started_at, last_heartbeat_at, status, locked_by } = await tables.row(table ?? '', id ?? '')
    assert.deepEqual([status, locked_by], ['processing', worker])
    return Number(last_heartbeat_at) > Number(started_at)
  })
  child.child.kill('SIGKILL')
  await child.ended
}

// E01 E03 E04 E09..E11 E26..E31 E38 E42 E54..E57
test('work, a failure, a row without attempts left and a lost worker, as the design names them', async (t) => {
  const tables = await existingTables(t)
  const migrated = await runCli(['migrate', '--tables', TABLES, '--engine', tables.engineUrl])
  assert.equal(migrated.code, 0, migrated.err)
  const { running, get, statuses, lines } = await startReaper(t, tables.engineUrl)
  await until(async () => (await statuses()).every((status) => status === 200))

  const { claimJob, heartbeatJob, finishJob } = openJobTables(tables.pool, { tables: ['jobs'] })
  for (const id of ['works', 'fails', 'lost']) await tables.insert('jobs', { id, stage: 'clip' })
  await tables.insert('asr_jobs', { id: 7, max_attempts: 1 })
  const losing = Promise.all([
    loseWorker(t, tables, ['jobs', 'lost', 'worker-1']),
    loseWorker(t, tables, ['asr_jobs', '7', 'worker-2']),
  ])
  for (const id of ['works', 'fails']) {
    assert.ok((await claimJob(id, 'worker-3', 300)).ok)
    assert.ok((await heartbeatJob(id, 'worker-3', 300)).ok)
  }
  assert.ok((await finishJob('works', true)).ok)
  assert.ok((await finishJob('fails', false, { code: 'E_CODEC', reason: 'no audio' })).ok)
  await losing
  await until(async () => (await tables.row('jobs', 'lost')).status === 'queued')
  await until(async () => (await tables.row('asr_jobs', '7')).status === 'failed')

  const shown = async (table: string, id: string) => {
    const { status, locked_by, lease_expires_at, attempt_count, fail_code, fail_reason } = await tables.row(table, id)
    return [status, locked_by, lease_expires_at, attempt_count, fail_code, fail_reason]
  }
  assert.deepEqual(await shown('jobs', 'works'), ['completed', null, null, 1, null, null])
  assert.deepEqual(await shown('jobs', 'fails'), ['queued', null, null, 1, 'E_CODEC', 'no audio'])
  assert.deepEqual(await shown('jobs', 'lost'), ['queued', null, null, 1, null, null])
  assert.deepEqual(await shown('asr_jobs', '7'), ['failed', null, null, 1, 'timeout', 'lease_expired'])
  assert.ok((await tables.row('jobs', 'lost')).next_earliest_run_at instanceof Date)
  for (const [id, type, table, lockedBy] of [
    ['lost', 'reaper:requeued', 'jobs', 'worker-1'],
    ['7', 'reaper:failed(timeout)', 'asr_jobs', 'worker-2'],
  ] as const) {
    const [event, ...others] = await tables.events(id)
    assert.deepEqual(others, [])
    assert.deepEqual([event?.type, event?.table], [type, table])
    assert.deepEqual(event?.details, { reason: 'lease_expired', locked_by: lockedBy })
    assert.match(String(event?.at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  }

  const { text } = await get('/metrics')
  const clip = { table: 'jobs', stage: 'clip' }
  const unknown = { table: 'asr_jobs', stage: 'unknown' }
  assert.deepEqual(
    [clip, unknown].flatMap((tags) =>
      ['reaper_requeues_total', 'reaper_failures_total'].map((name) => sampleValue(text, name, tags)),
    ),
    [1, 0, 0, 1],
  )
  for (const table of ['jobs', 'asr_jobs']) {
    assert.ok((sampleValue(text, 'reaper_scan_duration_ms_count', { table, stage: 'all' }) ?? 0) > 1, table)
    assert.ok((sampleValue(text, 'reaper_queue_age_seconds', { table }) ?? -1) >= 0, table)
  }
  assert.deepEqual(
    lines('Job requeued').map(({ event, table, job_id, stage, locked_by }) => [event, table, job_id, stage, locked_by]),
    [['reaper:requeued', 'jobs', 'lost', 'clip', 'worker-1']],
  )
  assert.deepEqual(
    lines('Job failed').map(({ event, table, job_id }) => [event, table, job_id]),
    [['reaper:failed(timeout)', 'asr_jobs', '7']],
  )
  const doctor = await runCli(['doctor', '--tables', TABLES, '--engine', tables.engineUrl, '--json'])
  const [reaper] = jsonLines(doctor.out).filter(({ subject }) => subject === 'reaper')
  assert.equal(reaper?.severity, 'ok', doctor.out)
  assert.equal((await get('/health/nothing')).status, 404)
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 0)
  assert.equal(lines('Reaper stopped').length, 1)
})

// E43 E44
test('a database that goes away and comes back: told, retried, and what expired meanwhile is reaped', async (t) => {
  const tables = await existingTables(t)
  await runCli(['migrate', '--tables', TABLES, '--engine', tables.engineUrl])
  const proxy: TcpProxy = await tcpProxy(t, tables.engineUrl)
  const { running, get, statuses, lines } = await startReaper(t, proxy.url)
  await until(async () => (await statuses()).every((status) => status === 200))
  proxy.cut()
  await until(() => lines('Reaper run failed').length > 0)
  assert.deepEqual(await statuses(), [503, 503, 200])
  const { reasons } = JSON.parse((await get('/health')).text)
  assert.deepEqual(
    reasons.map(({ check }: { check: string }) => check),
    ['database', 'runs'],
  )
  assert.ok(lines('Reaper retries').length >= 3)
  await tables.expired('jobs', 'a')
  proxy.thaw()
  await until(async () => (await tables.row('jobs', 'a')).status === 'queued')
  await until(async () => (await statuses()).every((status) => status === 200))
  assert.equal(lines('Reaper works again').length, 1)
  await stopped(running, 'SIGINT')
})

test('SIGTERM ends it after the pass that is under way, whose rows are reaped', async (t) => {
  const tables = await existingTables(t)
  await runCli(['migrate', '--tables', TABLES, '--engine', tables.engineUrl])
  const { running, lines } = await startReaper(t, tables.engineUrl)
  const client = await tables.pool.connect()
  try {
    await client.query('begin; lock table jobs in access exclusive mode')
    await client.query(
      `insert into jobs (id, status, lease_expires_at) values ('a', 'processing', now() - interval '1 minute')`,
    )
    const isWaiting = `select 1 from pg_locks where relation = 'jobs'::regclass and not granted`
    await until(async () => (await tables.pool.query(isWaiting)).rows.length > 0)
    running.child.kill('SIGTERM')
    await client.query('commit')
  } finally {
    client.release()
  }
  assert.equal((await running.ended).code, 0)
  assert.equal((await tables.row('jobs', 'a')).status, 'queued')
  assert.deepEqual([lines('Job requeued').length, lines('Reaper stopped').length], [1, 1])
})

test('a start while the database is away answers probes, and works when it comes', async (t) => {
  const tables = await existingTables(t)
  await runCli(['migrate', '--tables', TABLES, '--engine', tables.engineUrl])
  await tables.expired('jobs', 'a')
  const proxy = await tcpProxy(t, tables.engineUrl)
  proxy.cut()
  const { running, statuses } = await startReaper(t, proxy.url)
  assert.deepEqual(await statuses(), [503, 503, 200])
  proxy.thaw()
  await until(async () => (await tables.row('jobs', 'a')).status === 'queued')
  await until(async () => (await statuses()).every((status) => status === 200))
  await stopped(running, 'SIGTERM')
})

async function stopped(running: Running, signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
  running.child.kill(signal)
  const { code, err } = await running.ended
  assert.deepEqual([code, err], [0, ''])
}
