/** The Kubernetes manifests: what they say fits together, and their commands and probes work on this machine. */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { z } from 'zod'
import { PORT_DEFAULT } from '../../src/http/address.ts'
import { temporaryFolder, until } from '../cli/run.ts'
import { run, skip } from '../monitoring/promtool.ts'
import { documentsOf, drainMsOf, instruction, STOP_EXTRA_MS, startDeployed, stopInJob } from './deployed.ts'

const Probe = z.object({
  httpGet: z.object({ path: z.string(), port: z.string() }),
  periodSeconds: z.number(),
  failureThreshold: z.number().optional(),
})
const Container = z.object({
  args: z.array(z.string()),
  env: z.array(
    z.object({
      name: z.string(),
      valueFrom: z.object({ secretKeyRef: z.object({ name: z.string(), key: z.string() }) }),
    }),
  ),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: Probe.optional(),
  livenessProbe: Probe.optional(),
  readinessProbe: Probe.optional(),
  resources: z.object({
    requests: z.object({ cpu: z.string(), memory: z.string() }),
    limits: z.object({ memory: z.string() }),
  }),
  securityContext: z.object({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
})
const Labels = z.record(z.string(), z.string())
const Pod = z.object({
  metadata: z.object({ labels: Labels }),
  spec: z.object({
    terminationGracePeriodSeconds: z.number().optional(),
    automountServiceAccountToken: z.literal(false),
    securityContext: z.object({ runAsNonRoot: z.literal(true), runAsUser: z.number(), runAsGroup: z.number() }),
    containers: z.tuple([Container]),
  }),
})
const Deployment = z.object({
  kind: z.literal('Deployment'),
  metadata: z.object({ name: z.string() }),
  spec: z.object({ selector: z.object({ matchLabels: Labels }), template: Pod }),
})
const Job = z.object({ kind: z.literal('Job'), spec: z.object({ template: Pod }) })
const Budget = z.object({
  kind: z.literal('PodDisruptionBudget'),
  spec: z.object({ maxUnavailable: z.number(), selector: z.object({ matchLabels: Labels }) }),
})
const Service = z.object({
  kind: z.literal('Service'),
  spec: z.object({ selector: Labels, ports: z.tuple([z.object({ targetPort: z.string() })]) }),
})
const Target = z.object({ spec: z.object({ scaleTargetRef: z.object({ name: z.string() }) }) })

const [workerYaml, budgetYaml] = documentsOf('kubernetes/worker.yaml')
const [serveYaml, serviceYaml] = documentsOf('kubernetes/serve.yaml')
const [migrateYaml] = documentsOf('kubernetes/migrate.yaml')
const worker = Deployment.parse(workerYaml)
const serve = Deployment.parse(serveYaml)
const migrate = Job.parse(migrateYaml)
const containerOf = ({ spec }: z.infer<typeof Deployment>) => spec.template.spec.containers[0]

test('pods have the user of the image, their secrets from one Secret, and more time to stop than the drain takes', () => {
  const user = instruction('USER')
  for (const { spec } of [worker.spec.template, serve.spec.template, migrate.spec.template]) {
    const { runAsUser, runAsGroup } = spec.securityContext
    assert.equal(`${runAsUser}:${runAsGroup}`, user)
    for (const { valueFrom } of spec.containers[0].env) assert.equal(valueFrom.secretKeyRef.name, 'millrace')
  }
  const graceMs = (worker.spec.template.spec.terminationGracePeriodSeconds ?? 0) * 1_000
  assert.ok(graceMs > drainMsOf(containerOf(worker).args) + STOP_EXTRA_MS)
  assert.deepEqual(migrate.spec.template.spec.containers[0].args, ['migrate', '--json'])
  // The owner of the tables migrates; workers have another role.
  assert.deepEqual(
    [migrate.spec.template, worker.spec.template].map(
      ({ spec }) => spec.containers[0].env[0]?.valueFrom.secretKeyRef.key,
    ),
    ['owner-engine', 'engine'],
  )
})

test('selectors find their pods, and what scales finds its Deployment', () => {
  const budget = Budget.parse(budgetYaml)
  const service = Service.parse(serviceYaml)
  for (const { spec } of [worker, serve]) assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels)
  assert.deepEqual(budget.spec.selector.matchLabels, worker.spec.template.metadata.labels)
  assert.equal(budget.spec.maxUnavailable, 1)
  assert.deepEqual(service.spec.selector, serve.spec.template.metadata.labels)
  assert.equal(service.spec.ports[0].targetPort, containerOf(serve).ports[0]?.name)
  for (const file of ['keda', 'hpa']) {
    const [document] = documentsOf(`kubernetes/${file}.yaml`)
    assert.equal(Target.parse(document).spec.scaleTargetRef.name, worker.metadata.name)
  }
})

for (const deployment of [worker, serve]) {
  const { args, ports, startupProbe, livenessProbe, readinessProbe } = containerOf(deployment)
  test(`the probes of ${deployment.metadata.name} are answered by its command, and SIGTERM ends it with exit 0`, async (t) => {
    assert.deepEqual(
      ports.map(({ containerPort }) => containerPort),
      [PORT_DEFAULT],
    )
    const deployed = await startDeployed(t, args, { env: { MILLRACE_TOKENS: 'admin:a-token-for-the-tests' } })
    const address = await deployed.address()
    const probes = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet)
    assert.deepEqual(
      probes.map((probe) => probe?.path),
      ['/health/live', '/health/live', '/health/ready'],
    )
    for (const probe of probes) {
      assert.equal(probe?.port, ports[0]?.name)
      const { status } = await fetch(`${address}${probe?.path}`)
      assert.equal(status, 200, probe?.path)
    }
    const scrape = await (await fetch(`${address}/metrics`)).text()
    assert.match(scrape, /^# TYPE millrace_queue_depth gauge$/m)
    if (args[0] === 'work') {
      const { code, state } = await stopInJob(deployed, () => deployed.running.child.kill('SIGTERM'))
      return assert.deepEqual({ code, state }, { code: 0, state: 'completed' })
    }
    deployed.running.child.kill('SIGTERM')
    assert.equal((await deployed.running.ended).code, 0)
  })
}

test('a worker whose store is gone is not ready, and still alive', async (t) => {
  const folder = await temporaryFolder(t)
  const deployed = await startDeployed(t, containerOf(worker).args, { engine: `sqlite:${join(folder, 'millrace.db')}` })
  const address = await deployed.address()
  rmSync(join(folder, 'millrace.db'))
  await until(async () => (await fetch(`${address}/health/ready`)).status === 503)
  assert.equal((await fetch(`${address}/health/live`)).status, 200)
})

test('KEDA and the HPA ask for the waiting jobs of the store, counted once', { skip }, async (t) => {
  const keda = z.object({
    spec: z.object({ triggers: z.tuple([z.object({ metadata: z.object({ query: z.string() }) })]) }),
  })
  const adapter = z.object({
    rules: z.object({
      external: z.tuple([z.object({ metricsQuery: z.string(), name: z.object({ as: z.string() }) })]),
    }),
  })
  const hpa = z.object({
    spec: z.object({
      metrics: z.tuple([z.object({ external: z.object({ metric: z.object({ name: z.string() }) }) })]),
    }),
  })
  const [trigger] = keda.parse(documentsOf('kubernetes/keda.yaml')[0]).spec.triggers
  const [rule] = adapter.parse(documentsOf('kubernetes/prometheus-adapter.yaml')[0]).rules.external
  assert.equal(hpa.parse(documentsOf('kubernetes/hpa.yaml')[0]).spec.metrics[0].external.metric.name, rule.name.as)
  assert.equal(trigger.metadata.query, rule.metricsQuery)
  const depth = (type: string, state: string, instance: string, value: number) => ({
    series: `millrace_queue_depth{engine="postgres",type="${type}",state="${state}",instance="${instance}"}`,
    values: `${value}x10`,
  })
  const document = {
    rule_files: [],
    evaluation_interval: '1s',
    tests: [
      {
        interval: '1s',
        // Two processes report the same store; jobs that run or are delayed need no worker.
        input_series: ['a', 'b'].flatMap((one) => [
          depth('mail', 'waiting', one, 300),
          depth('bill', 'waiting', one, 20),
          depth('bill', 'delayed', one, 5_000),
          depth('mail', 'active', one, 50),
        ]),
        promql_expr_test: [{ expr: rule.metricsQuery, eval_time: '5s', exp_samples: [{ labels: '{}', value: 320 }] }],
      },
    ],
  }
  const file = join(await temporaryFolder(t), 'query.yml')
  writeFileSync(file, JSON.stringify(document))
  assert.equal(run('test', 'rules', file), '')
})
