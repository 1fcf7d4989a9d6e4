import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { z } from 'zod'
import { ESCROW_TOPICS, ESCROW_WORKERS } from '../../workloads/escrow/index.ts'
import { sampleValue } from '../fixtures/exposition.ts'
import { lint, promtool } from '../monitoring/promtool.ts'
import { startKafka, withAdmin } from '../servers/kafka.ts'
import { jsonLines, millrace, startMillrace, temporaryFolder, until } from './run.ts'

/** Seven workers join their groups, and each command below is a process of its own. */
const LIMIT_MS = 180_000

const Lags = z.object({ topics: z.array(z.object({ group: z.string() })) })
const Letters = z.object({ letters: z.array(z.unknown()) })

// D01 D22 D48
test('start --preset escrow runs the seven workers on a broker, makes their topics and says what to type', async (t) => {
  const server = await startKafka()
  t.after(() => server.end())
  const record = join(await temporaryFolder(t), 'deeds.jsonl')
  const deeds = async (): Promise<readonly Record<string, unknown>[]> =>
    jsonLines(await readFile(record, 'utf8').catch(() => ''))
  const args = ['start', '--preset', 'escrow', '--engine', server.url, '--record', record, '--port', '0', '--json']
  const running = startMillrace(t, args)
  await running.said('To try it')
  const topics = await withAdmin(server, (admin) => admin.listTopics())
  for (const { topic, dlq } of ESCROW_TOPICS) assert.ok(topics.includes(topic) && topics.includes(dlq), topic)

  // As the log says it is typed.
  const payment = '{"command":"payout","amount":100.5}'
  const sent = await millrace(['enqueue', 'escrow.commands', payment, '--key', 'deal_1', '--engine', server.url])
  assert.equal(sent.code, 0, sent.err)
  await until(async () => (await deeds()).length === 3, LIMIT_MS)
  const did = new Map((await deeds()).map(({ worker, did: what, key }) => [worker, [what, key]]))
  assert.deepEqual(did.get('payout-executor'), ['paid out', 'deal_1'])
  assert.deepEqual(did.get('refund-executor'), ['passed it over', 'deal_1'])
  assert.deepEqual(did.get('ton-deposit-watcher'), ['passed it over', 'deal_1'])

  const refusal = '{"command":"refund","fail":"no such deal"}'
  await millrace(['enqueue', 'escrow.commands', refusal, '--attempts', '2', '--engine', server.url])
  const failures = async (): Promise<readonly unknown[]> =>
    (await deeds())
      .filter((deed) => deed.did === 'failed: no such deal')
      .map(({ worker, attempt }) => [worker, attempt])
  await until(async () => (await failures()).length === 2, LIMIT_MS)
  assert.deepEqual(await failures(), [
    ['refund-executor', 1],
    ['refund-executor', 2],
  ])
  await until(async () => {
    const { out } = await millrace(['dead', 'list', '--json', '--engine', `${server.url}?group=refund-executor`])
    return out.includes('no such deal')
  }, LIMIT_MS)

  // The dashboard beside it knows the topics, and the dead letter by its endpoint.
  const page = /"url":"([^"]+)"/.exec(running.output)?.[1]
  const answer = async (path: string): Promise<unknown> => (await fetch(`${page}${path}`)).json()
  const { topics: lags } = Lags.parse(await answer('/api/v1/topics'))
  assert.deepEqual(new Set(lags.map(({ group }) => group)), new Set(ESCROW_WORKERS.map(({ group }) => group)))
  const { letters } = Letters.parse(await answer('/internal/v1/dlq/escrow.commands'))
  assert.equal(letters.length, 1)

  // Its metrics are those of all seven.
  const scrape = await (await fetch(`${page}/metrics`)).text()
  assert.equal(sampleValue(scrape, 'millrace_worker_instances'), ESCROW_WORKERS.length)
  const completed = sampleValue(scrape, 'millrace_jobs_completed_total', { type: 'escrow.commands' })
  assert.ok(Number(completed) >= 3, `${completed} of three groups`)
  assert.equal(sampleValue(scrape, 'millrace_dead_letters', { type: 'escrow.commands' }), 1)
  if (promtool !== null) assert.equal(lint(scrape), '')

  // So is its health, and what the overview says of it.
  const { details } = z.object({ details: z.object({ activeWorkers: z.number() }) }).parse(await answer('/health'))
  assert.equal(details.activeWorkers, ESCROW_WORKERS.length)
  const { workers } = z.object({ workers: z.number() }).parse(await answer('/api/v1/overview'))
  assert.equal(workers, ESCROW_WORKERS.length)

  running.child.kill('SIGTERM')
  const { code, out, err } = await running.ended
  assert.equal(code, 0, err)
  const said = jsonLines(out)
  const started = said.filter(({ msg }) => msg === 'Worker starting').map(({ worker_id }) => worker_id)
  assert.deepEqual(started.sort(), ESCROW_WORKERS.map(({ worker }) => `${worker}-1`).sort())
  assert.ok(said.some(({ msg }) => msg === 'Payout Executor: paid out'))
  assert.ok(said.some(({ msg, type }) => msg === 'To try it' && String(type).startsWith('millrace enqueue')))
})

test('a preset says where it can run, and what does not go with it', async () => {
  const refused = async (...args: readonly string[]): Promise<string> => {
    const { code, err } = await millrace(['start', ...args])
    assert.notEqual(code, 0)
    return err
  }
  assert.match(await refused('--preset', 'escrow', '--engine', 'sqlite:x.db'), /runs on Kafka.*add --engine kafka/)
  assert.match(await refused('--preset', 'escrow', '--engine', 'kafka://a?group=g'), /leave out 'group'/)
  assert.match(await refused('--preset', 'nonsense'), /escrow/)
  assert.match(await refused('jobs.ts', '--preset', 'escrow'), /brings its own jobs/)
  assert.match(await refused('--record', 'x'), /add --preset/)
})
