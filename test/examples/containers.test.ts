/** The Dockerfile and the compose file: what they say, and their commands on this machine. No Docker is needed. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { z } from 'zod'
import { PORT_DEFAULT } from '../../src/http/address.ts'
import { parseDurationMs } from '../../src/time/duration.ts'
import { runCli } from '../cli/in-process.ts'
import { jsonLines } from '../cli/run.ts'
import { postgresServer, schemaUrl } from '../servers/postgres.ts'
import { startRedis } from '../servers/redis.ts'
import {
  dockerfile,
  documentsOf,
  drainMsOf,
  execForm,
  INSTALLED,
  instruction,
  readDeployed,
  STOP_EXTRA_MS,
  startDeployed,
  stopInJob,
} from './deployed.ts'

const CMD = execForm(instruction('CMD'))

/** Without a shell in between, as Docker runs it; on another port than the image's. */
function checkHealth(address: string): number | null {
  const [command = '', ...args] = execForm(instruction('HEALTHCHECK'))
  assert.equal(command, 'node')
  const here = args.map((arg) => arg.replace(`http://127.0.0.1:${PORT_DEFAULT}`, address))
  assert.notDeepEqual(here, args)
  return spawnSync(process.execPath, here).status
}

test('the image is not run as root, and node itself gets the signal that stops it', () => {
  assert.match(instruction('USER'), /^[1-9]\d*:[1-9]\d*$/)
  assert.deepEqual(execForm(instruction('ENTRYPOINT')), ['node', INSTALLED])
  assert.equal(instruction('STOPSIGNAL'), 'SIGTERM')
  assert.equal(instruction('EXPOSE'), String(PORT_DEFAULT))
  const [major] = process.versions.node.split('.')
  for (const { text } of dockerfile().filter(({ name }) => name === 'FROM'))
    assert.match(text, new RegExp(`^node:${major}-alpine`))
})

test('the image gets what it needs and nothing else', () => {
  const allowed = readDeployed('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(allowed[0], '*')
  const copied = dockerfile()
    .filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from'))
    .flatMap(({ text }) => text.split(' ').slice(0, -1))
  assert.deepEqual(new Set(allowed.slice(1)), new Set(copied.map((file) => `!${file}`)))
})

test('the image answers its health check while it runs, and stops in the middle of a job with exit 0', async (t) => {
  const deployed = await startDeployed(t, CMD)
  const address = await deployed.address()
  assert.equal(checkHealth(address), 0)
  const { code, state } = await stopInJob(deployed, () => deployed.running.child.kill('SIGTERM'))
  assert.deepEqual({ code, state }, { code: 0, state: 'completed' })
  assert.equal(checkHealth(address), 1)
})

const PID_1 = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']
const canBePid1 = spawnSync(PID_1[0] ?? '', [...PID_1.slice(1), 'true']).status === 0

// The kernel drops signals to process 1 that it has no handler for, so this is not the same as the test above.
test('as process 1 it is stopped by the signal too', {
  skip: canBePid1 ? false : 'it needs unshare, as root',
}, async (t) => {
  const deployed = await startDeployed(t, CMD, { under: PID_1 })
  const { pid } = deployed.running.child
  const { code, state } = await stopInJob(deployed, () => {
    const [inner] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    assert.match(execFileSync('cat', [`/proc/${inner}/status`], { encoding: 'utf8' }), /^NSpid:\t\d+\t1$/m)
    process.kill(Number(inner), 'SIGTERM')
  })
  assert.deepEqual({ code, state }, { code: 0, state: 'completed' })
})

const Condition = z.object({ condition: z.string(), required: z.boolean().optional() })
const Service = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
  restart: z.string(),
  stop_grace_period: z.string(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).optional(),
  profiles: z.array(z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  ports: z.array(z.string()).optional(),
  healthcheck: z.object({ test: z.array(z.string()).optional(), disable: z.boolean().optional() }).optional(),
  depends_on: z.record(z.string(), Condition).optional(),
})
const Compose = z.object({ services: z.record(z.string(), Service), volumes: z.record(z.string(), z.null()) })

const { services, volumes } = Compose.parse(documentsOf('compose.yaml')[0])
const service = (name: string) => {
  const found = services[name]
  assert.ok(found, name)
  return found
}

test('the compose file migrates first, keeps what stores hold, and stops nothing too early', () => {
  const graceMs = (name: string): number => parseDurationMs(service(name).stop_grace_period, 'grace')
  assert.ok(graceMs('worker') > drainMsOf(service('worker').command ?? []) + STOP_EXTRA_MS)
  assert.ok(graceMs('serve') > STOP_EXTRA_MS)
  for (const name of ['worker', 'serve']) {
    const { depends_on: on = {}, restart, read_only: isReadOnly, cap_drop: dropped, environment = {} } = service(name)
    assert.equal(on.migrate?.condition, 'service_completed_successfully')
    assert.deepEqual([on.redis?.required, on.kafka?.required], [false, false], 'only with its profile')
    assert.deepEqual([restart, isReadOnly, dropped], ['unless-stopped', true, ['ALL']])
    assert.match(
      String(environment.MILLRACE_ENGINE),
      /^\$\{MILLRACE_ENGINE:-postgres:\/\/.*\$\{POSTGRES_PASSWORD:\?.*\}@postgres:5432\//,
    )
  }
  assert.equal(service('migrate').depends_on?.postgres?.condition, 'service_healthy')
  for (const name of ['postgres', 'redis', 'kafka']) {
    const { healthcheck, volumes: mounted = [], profiles = [] } = service(name)
    assert.equal(healthcheck?.test?.[0], 'CMD', name)
    assert.ok(
      mounted.some((mount) => Object.hasOwn(volumes, mount.split(':')[0] ?? '')),
      name,
    )
    assert.deepEqual(profiles, name === 'postgres' ? [] : [name])
  }
  for (const port of service('serve').ports ?? []) assert.match(port, /^127\.0\.0\.1:/)
  assert.doesNotMatch(readDeployed('compose.yaml'), /PASSWORD: (?!\$\{)|TOKENS: (?!\$\{)/, 'no secret is in the file')
})

test('the commands of the compose file migrate, work and serve on Postgres, and stop with exit 0', async (t) => {
  const { url: engine } = schemaUrl(await postgresServer())
  const migrated = await runCli([...(service('migrate').command ?? []), '--engine', engine])
  assert.equal(migrated.code, 0, migrated.err)
  const token = 'a-token-for-the-tests'
  const serve = await startDeployed(t, service('serve').command ?? [], {
    engine,
    env: { MILLRACE_TOKENS: `admin:${token}` },
  })
  const dashboard = await serve.address()
  assert.equal(checkHealth(dashboard), 0, "the image's health check fits both")
  const sessions = ['', `Bearer ${token}`].map((authorization) =>
    fetch(`${dashboard}/api/v1/session`, { headers: { authorization } }),
  )
  assert.deepEqual(
    (await Promise.all(sessions)).map(({ status }) => status),
    [401, 200],
  )
  const worker = await startDeployed(t, service('worker').command ?? [], { engine })
  assert.equal(checkHealth(await worker.address()), 0)
  const { code, state } = await stopInJob(worker, () => worker.running.child.kill('SIGTERM'))
  assert.deepEqual({ code, state }, { code: 0, state: 'completed' })
  serve.running.child.kill('SIGTERM')
  assert.equal((await serve.running.ended).code, 0)
})

test('the Redis of the compose file has nothing that the doctor complains about', async (t) => {
  const [program, ...words] = service('redis').command ?? []
  assert.equal(program, 'redis-server')
  const settings = Object.fromEntries(
    words
      .join(' ')
      .split('--')
      .filter((one) => one !== '')
      .map((one) => one.trim().split(' ')),
  )
  const redis = await startRedis({ settings })
  t.after(() => redis.end())
  const { code, out } = await runCli(['doctor', '--json', '--engine', redis.url])
  assert.equal(code, 0, out)
  const findings = jsonLines(out).filter(({ subject }) => /durability|eviction|memory/.test(String(subject)))
  assert.deepEqual(
    findings.filter(({ severity }) => severity !== 'ok'),
    [],
  )
  assert.ok(findings.length >= 3, out)
})
