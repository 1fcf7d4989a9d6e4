/**
 * What watching costs a worker: npm run bench:watching [-- --rounds N]
 *
 * A worker drains empty jobs on SQLite, the worst case there is, with the admin API served in its process: while nobody
 * looks, and with a page open: the list of jobs, or the page of their type. V8's profiler says which share of the busy time of its thread went to serving, sampling,
 * listening and writing the history. A comparison of rates would say the same, if the rate of one and the same code did not swing by half from
 * one second to the next on a machine that is shared; the rates are printed to show that.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { boundYoungHeap } from '../../src/cli/young-heap.ts'
import { createAdmin } from '../../src/http/index.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { machineFacts } from '../machine.ts'
import { inBatches, makePayloads } from '../payload.ts'

const FORMS = ['alone', 'served', 'jobs', 'type'] as const
type Form = (typeof FORMS)[number]

const JOBS = 150_000
const CONCURRENCY = 50
const COST_MAX = 0.03
const SAMPLE_US = 200
const PAGE = fileURLToPath(new URL('./page.ts', import.meta.url))

const { values } = parseArgs({ options: { rounds: { type: 'string' } } })
const rounds = Number(values.rounds ?? 5)
const job = defineJob({ type: 'bench' })
const payloads = makePayloads(JOBS)

interface Drained {
  readonly rate: number
  /** Of the busy time of the thread. */
  readonly watching: number
}

async function drain(mill: Mill): Promise<Drained> {
  for (const batch of inBatches(payloads, 1_000)) await mill.enqueueMany(job, batch)
  const { promise, resolve } = Promise.withResolvers<void>()
  let done = 0
  const handled = job.handledBy(() => {
    done += 1
    if (done === JOBS) resolve()
  })
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
  await session.post('Profiler.start')
  const sinceMs = performance.now()
  const worker = await mill.work([handled], { concurrency: CONCURRENCY })
  await promise
  const rate = (JOBS / (performance.now() - sinceMs)) * 1_000
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  await worker.stop()
  return { rate, watching: watchingShare(profile) }
}

/** Neither the worker nor SQLite has anything to do with these. What is made only for listeners counts too. */
const WATCHING =
  /\/src\/(http|observe|events|keeper\/history)|^node:(_http|internal\/http|net$|internal\/stream|internal\/webstreams|internal\/deps\/undici)/
const FOR_LISTENERS: ReadonlySet<string> = new Set(['factsOf', 'get facts', '#emitClaimed'])

/** By samples in whose stack somebody watches. The collector of garbage is nobody's, and left out with the idle time. */
function watchingShare({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): number {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const isWatching = (id: number | undefined): boolean => {
    const node = id === undefined ? undefined : byId.get(id)
    if (node === undefined || id === undefined) return false
    const { url, functionName } = node.callFrame
    return WATCHING.test(url) || FOR_LISTENERS.has(functionName) || isWatching(parents.get(id))
  }
  const watching = new Map(nodes.map(({ id }) => [id, isWatching(id)]))
  const isBusy = (id: number): boolean =>
    !['(idle)', '(program)', '(garbage collector)', '(root)'].includes(byId.get(id)?.callFrame.functionName ?? '')
  let [busy, watched] = [0, 0]
  for (const [index, id] of samples.entries()) {
    const us = isBusy(id) ? (timeDeltas[index] ?? 0) : 0
    busy += us
    if (watching.get(id) === true) watched += us
  }
  return watched / busy
}

async function measure(form: Form): Promise<Drained> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-watching-'))
  const mill = await open(`sqlite:${join(folder, 'jobs.db')}`)
  const server = form === 'alone' ? null : await createAdmin(mill, { jobs: [job] }).listen({ port: 0 })
  const isOpen = form === 'jobs' || form === 'type'
  const page = isOpen && server !== null ? fork(PAGE, [server.url, form]) : null
  try {
    if (page !== null) await once(page, 'message')
    const drained = await drain(mill)
    if (page !== null && page.exitCode !== null) throw new Error('the page was closed too soon')
    return drained
  } finally {
    page?.kill('SIGKILL')
    await server?.close()
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

boundYoungHeap()
const machine = machineFacts({})
await measure('type')
const rows: { readonly form: Form; readonly rate: number; readonly watching: number }[] = []
for (let round = 0; round < rounds; round += 1) {
  for (const form of FORMS) {
    const { rate, watching } = await measure(form)
    rows.push({ form, rate: Math.round(rate), watching: Math.round(watching * 1e4) / 1e4 })
  }
}
console.table(rows)
const shareOf = (form: Form): number => {
  const shares = rows.filter((row) => row.form === form).map(({ watching }) => watching)
  return Math.round((shares.reduce((sum, share) => sum + share, 0) / shares.length) * 1e4) / 1e4
}
const shares = Object.fromEntries(FORMS.map((form) => [form, shareOf(form)]))
console.log('share of the busy time, means:', shares)
mkdirSync('bench/results/admin', { recursive: true })
writeFileSync(
  'bench/results/admin/watching.json',
  `${JSON.stringify({ jobs: JOBS, rounds, machine, shares, rows }, null, 2)}\n`,
)
process.exit(Math.max(shareOf('jobs'), shareOf('type')) <= COST_MAX ? 0 : 1)
