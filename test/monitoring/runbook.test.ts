/** The runbook: an entry for every alert that is shipped, an alert for every entry, and commands that work. */
import assert from 'node:assert/strict'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { defineJob, NonRetryable, open } from 'millrace'
import { RUNBOOK, runbookEntry } from '../../src/observe/alerts/runbook.ts'
import { runCli } from '../cli/in-process.ts'
import { ROOT, temporaryFolder } from '../cli/run.ts'
import { postgresServer, query, schemaUrl } from '../servers/postgres.ts'
import { run, skip } from './promtool.ts'
import { builtInRules, filesWithRules, prometheusAlerts, singleAlerts } from './shipped-alerts.ts'

interface Entry {
  readonly heading: string
  readonly text: string
  /** By name, with the severity. */
  readonly alerts: ReadonlyMap<string, string>
}

const [, ...sections] = readFileSync(path.join(ROOT, RUNBOOK), 'utf8').split(/^## /m)
const entries = sections.map((section): Entry => {
  const [heading = ''] = section.split('\n')
  const [, listed = ''] = /^Alerts: (.*)$/m.exec(section) ?? []
  const alerts = [...listed.matchAll(/`(\w+)` \((\w+)/g)].map(
    ([, name = '', severity = '']) => [name, severity] as const,
  )
  return { heading, text: section, alerts: new Map(alerts) }
})

const ADVICE = `add an entry to ${RUNBOOK} (or the alert to the line 'Alerts:' of one), and link to it: 'runbook: runbookEntry(…)' in the rule, 'runbook_url' in the Prometheus rule`

/** The entry that has this alert. */
function entryOf(name: string): Entry {
  const [entry, second] = entries.filter(({ alerts }) => alerts.has(name))
  assert.ok(entry, `the alert ${name} has no entry; ${ADVICE}`)
  assert.equal(second, undefined, `${name} has two entries`)
  return entry
}

test('every alert has an entry with its severity, and links to it', async () => {
  const shipped = [...prometheusAlerts(), ...(await builtInRules())]
  assert.ok(shipped.length >= 45, `${shipped.length} alerts were found`)
  for (const { name, severity, runbook, source } of shipped) {
    const { heading, alerts } = entryOf(name)
    assert.equal(runbook, runbookEntry(heading), `${name} of ${source}: ${ADVICE}`)
    assert.equal(alerts.get(name), severity, `the severity of ${name}`)
  }
  for (const { source, hasRunbook } of filesWithRules()) assert.ok(hasRunbook, `${source}: ${ADVICE}`)
  const singles = singleAlerts()
  assert.ok(singles.length >= 3)
  for (const { name, source, hasRunbook } of singles) {
    entryOf(name)
    assert.ok(hasRunbook, `${source}: ${ADVICE}`)
  }
})

test('every alert of an entry exists, and every entry says all that it should', async () => {
  const known = new Set([...prometheusAlerts(), ...(await builtInRules()), ...singleAlerts()].map(({ name }) => name))
  for (const { heading, text, alerts } of entries) {
    assert.ok(alerts.size > 0, `${heading} has no alert`)
    for (const name of alerts.keys()) assert.ok(known.has(name), `${heading}: there is no alert ${name}`)
    for (const part of ['Means.', 'Confirm.', 'Do.', 'Clears'])
      assert.ok(text.includes(`**${part}**`), `${heading}: ${part}`)
  }
})

test('runbook_url is a path in the package, and a link where Prometheus is told the place', { skip }, async (t) => {
  const rules = path.join(ROOT, 'examples/monitoring/prometheus/millrace.rules.yml')
  const told = (runbooks: string | null) => ({
    interval: '1s',
    input_series: [{ series: 'millrace_worker_instances{engine="sqlite"}', values: '0x100' }],
    ...(runbooks !== null && { external_labels: { runbooks } }),
    alert_rule_test: [
      {
        eval_time: '61s',
        alertname: 'MillraceNoWorkers',
        exp_alerts: [
          {
            exp_labels: { severity: 'critical', engine: 'sqlite' },
            exp_annotations: {
              summary: 'no worker runs on sqlite',
              action: 'Start one, or find out why they have stopped.',
              runbook_url: `${runbooks ?? ''}${runbookEntry('NoWorkers')}`,
            },
          },
        ],
      },
    ],
  })
  const document = {
    rule_files: [rules],
    evaluation_interval: '1s',
    tests: [told(null), told('https://wiki.example/')],
  }
  const file = path.join(await temporaryFolder(t), 'test.yml')
  writeFileSync(file, JSON.stringify(document))
  assert.equal(run('test', 'rules', file), '')
})

/** Lines of the shell blocks, without their comments. */
const commands = [...readFileSync(path.join(ROOT, RUNBOOK), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(
  ([, block = '']) => block.trim().split('\n'),
)

/** A store with a dead letter and a waiting job. */
async function troubled(t: TestContext) {
  const file = path.join(await temporaryFolder(t), 'jobs.db')
  const url = `sqlite:${file}`
  const mill = await open(url)
  const mail = defineJob({ type: 'mail', run: () => Promise.reject(new NonRetryable('no such user')) })
  const worker = await mill.work([mail])
  const over = mill.events.next('job.settled')
  const { id } = await mill.enqueue(mail, null)
  await over
  await worker.stop()
  await mill.enqueue(defineJob({ type: 'wait' }), null)
  const groups = await runCli(['dead', 'list', '--groups', '--json', '--engine', url])
  const { fingerprint } = JSON.parse(groups.out)
  await mill.close()
  return { file, id, cause: String(fingerprint) }
}

/** As a shell splits it: words, or words in quotes. */
const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? '')

test('every command of the runbook is accepted and does its work', async (t) => {
  const own = commands.filter((line) => line.startsWith('millrace '))
  assert.ok(own.length >= 40, `${own.length} commands`)
  const { file, id, cause } = await troubled(t)
  for (const [index, line] of [...new Set(own)].entries()) {
    // Each on a store of its own: some act.
    const copy = `${file}.${index}`
    cpSync(file, copy)
    const filled = line
      .replaceAll(/\bID\b/g, id)
      .replaceAll(/\bTYPE\b/g, 'mail')
      .replaceAll(/\bCAUSE\b/g, cause)
    const [, ...args] = wordsOf(filled.replace('BROKER:9092', '127.0.0.1:1').replace('HOST:6379', '127.0.0.1:1'))
    const isKafka = filled.includes('kafka://')
    const { code, err } = await runCli(isKafka ? args : [...args, '--engine', `sqlite:${copy}`])
    // No broker is there, so the refusal of the connection shows that the command itself was understood.
    if (isKafka) assert.match(err, /ERR_STORAGE_OPEN/, line)
    // A store in trouble is what health and the doctor are asked about.
    else assert.ok(code === 0 || (code === 1 && /^(health|doctor)$/.test(args[0] ?? '')), `${line}: ${code} ${err}`)
  }
})

test('the statements of the runbook find rows of job tables', async () => {
  const statements = commands.flatMap((line) => /^psql "\$MILLRACE_ENGINE" -c "(.*)"$/.exec(line)?.[1] ?? [])
  assert.equal(statements.length, 3)
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  const within = `${server.url}?options=-csearch_path%3D${schema}`
  await query(server.url, `CREATE SCHEMA ${schema}`)
  await query(within, 'CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT NOT NULL)')
  const migrated = await runCli(['migrate', '--tables', 'jobs', '--engine', url])
  assert.equal(migrated.code, 0, migrated.err)
  await query(
    within,
    `INSERT INTO jobs (id, status, fail_code) VALUES ('due', 'queued', NULL), ('ID', 'failed', 'timeout')`,
  )
  const found: number[] = []
  for (const sql of statements) found.push((await query(within, sql)).length)
  assert.deepEqual(found, [1, 1, 0])
  const [row] = await query(within, `SELECT status FROM jobs WHERE id = 'ID'`)
  assert.partialDeepStrictEqual(row, { status: 'queued' })
})
