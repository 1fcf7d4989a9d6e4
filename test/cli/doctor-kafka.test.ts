import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTopic, startKafka } from '../servers/kafka.ts'
import { runCli } from './in-process.ts'
import { jsonLines } from './run.ts'

const SUBJECTS = ['broker version', 'brokers', 'timeouts', 'handlers', 'topics', 'replication', 'retention']

// D12 D14
test('millrace doctor examines Kafka, and exits 1 while something is an error', { timeout: 300_000 }, async (t) => {
  const server = await startKafka({ 'group.max.session.timeout.ms': '20000' })
  t.after(() => server.end())
  await createTopic(server, 'app.escrow.commands')
  const engine = ['--engine', `${server.url}?prefix=app.&group=payouts`]
  const sound = ['--engine', `${server.url}?prefix=app.&group=payouts&session=20000`]
  const { code, out } = await runCli(['doctor', '--json', ...engine])
  assert.equal(code, 1)
  const findings = jsonLines(out)
  for (const subject of [
    ...SUBJECTS,
    'dead letters',
    'group',
    'workers',
    'lag',
    'overdue jobs',
    'lost jobs',
    'clock',
  ]) {
    assert.ok(
      findings.some((finding) => finding.subject === subject),
      subject,
    )
  }
  const wrong = findings.filter(({ severity }) => severity === 'error')
  assert.deepEqual(
    wrong.map(({ subject, detail }) => `${subject}: ${detail}`),
    [
      'timeouts: session 30 s, a heartbeat every 3000 ms: the broker accepts no member with it, only with 1000 to 20000 ms',
    ],
  )
  assert.equal((await runCli(['doctor', ...sound])).code, 0)
  for (let n = 0; n < 2; n += 1) assert.equal((await runCli(['enqueue', 'escrow.commands', '{}', ...sound])).code, 0)
  assert.equal((await runCli(['doctor', '--lag', 'escrow.commands=1,2', ...sound])).code, 0)
  const behind = await runCli(['doctor', '--lag', 'other=5,9', '--lag', 'escrow.commands=0,1', ...sound])
  assert.equal(behind.code, 1)
  assert.match(behind.out, /'payouts' is 2 records behind on 'app\.escrow\.commands', more than 1/)
  await server.kill()
  const away = await runCli(['doctor', ...sound])
  assert.equal(away.code, 1)
  assert.match(away.err, /no Kafka broker can be used at 127\.0\.0\.1:\d+.*ERR_STORAGE_OPEN/)
})

test('limits that are no limits are refused', async () => {
  for (const lag of ['escrow.commands', 'escrow.commands=5', 'escrow.commands=5,4', '=1,2']) {
    const { code, err } = await runCli(['doctor', '--lag', lag, '--engine', 'memory:'])
    assert.equal(code, 2, lag)
    assert.match(err, /'lag' is '.*'; give a type and two rising numbers/)
  }
})
