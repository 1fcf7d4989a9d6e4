/** Rules and the dashboard may ask only for what a scrape really has. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { defineJob } from '../../src/index.ts'
import { attachMetrics, MemoryPresence } from '../../src/observe/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import { Watch, watchMetrics } from '../../workloads/escrow/index.ts'
import { jobTableMetrics } from '../../workloads/job-tables/metrics.ts'
import { parseExposition } from '../fixtures/exposition.ts'
import { run, skip } from './promtool.ts'

const OPS = fileURLToPath(new URL('../../examples/monitoring/', import.meta.url))
const read = (file: string): string => readFileSync(path.join(OPS, file), 'utf8')

interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}
const dashboard: { readonly panels: readonly Panel[]; readonly templating: object } = JSON.parse(
  read('grafana/millrace.json'),
)
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

/** Names of metrics in an expression: labels, strings and what stands in brackets are none. */
function metricsIn(expression: string): readonly string[] {
  const bare = expression.replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"|\b(?:by|on) \([^)]*\)/g, ' ')
  return bare.match(/\b[a-z]+_[a-z0-9_]+\b(?! ?\()/g) ?? []
}

const exposed = new Set<string>()

before(async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  const watch = new Watch({ presence, lags: async () => [], pending: async () => [], clock: t.clock })
  const escrow = watchMetrics({ watch, dlqTopicOf: (type: string) => `${type}.dlq` })
  const instruments = [escrow.instrument, jobTableMetrics().instrument]
  const metrics = await attachMetrics(t.mill, { instruments, clock: t.clock })
  const job = defineJob({ type: 'mail', run: () => 1 })
  await t.mill.enqueue(job, null)
  await drain(t.mill, [job])
  for (const [name, { type }] of parseExposition(await metrics.collectMetrics())) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const suffix of suffixes) exposed.add(name + suffix)
  }
})

test('a scrape was really read', () => {
  assert.ok(exposed.size > 40, `${exposed.size}`)
  for (const name of ['millrace_jobs_total', 'kafka_consumer_lag', 'reaper_requeues_total'])
    assert.ok(exposed.has(name))
  assert.deepEqual(metricsIn('sum by (no_label) (rate(millrace_a_total{no_b="x_y"}[$__no]))'), ['millrace_a_total'])
})

test('every expression of the dashboard asks for metrics that there are', () => {
  assert.ok(expressions.length > 30, `${expressions.length}`)
  for (const expression of expressions) {
    const asked = metricsIn(expression)
    assert.ok(asked.length > 0, expression)
    assert.deepEqual(
      asked.filter((name) => !exposed.has(name)),
      [],
      expression,
    )
  }
})

for (const file of ['prometheus/millrace.rules.yml', 'prometheus/escrow.rules.yml']) {
  test(`every expression of ${file} asks for metrics that there are`, () => {
    const rules = read(file).replaceAll(/^ *(?:#|summary:|action:|runbook_url:|severity:|- name:).*$/gm, '')
    const asked = new Set(metricsIn(rules))
    assert.ok(asked.size >= 7, [...asked].join(' '))
    assert.deepEqual(
      [...asked].filter((name) => !exposed.has(name) && !/^(?:histogram_quantile|max_over_time)$/.test(name)),
      [],
    )
  })
}

test('Prometheus understands every expression of the dashboard', { skip }, async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-dashboard-'))
  try {
    const rules = expressions.map((expression, index) => {
      const expr = expression.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, '.*')
      return { record: `panel_${index}`, expr }
    })
    const file = path.join(folder, 'panels.yml')
    await writeFile(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
    assert.equal(run('check', 'rules', '--lint=none', file), '')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('panels have each an id and a place of their own', () => {
  const { panels } = dashboard
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const cells = panels.flatMap(({ title, gridPos: { h, w, x, y } }) => {
    assert.ok(x + w <= 24, title)
    return Array.from({ length: h * w }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`)
  })
  assert.equal(new Set(cells).size, cells.length, 'no two panels overlap')
})
