/**
 * The tour, `npm start`: a worker, jobs that show everything that can happen to a job, the dashboard, and a live view in the
 * terminal, on ./millrace.db. Ctrl-C drains and stops.
 */
import { parseArgs } from 'node:util'
import { isMillraceError, type Mill, open } from 'millrace'
import { type Admin, createAdmin, PORT_DEFAULT } from 'millrace/http'
import { Screen } from '../../src/cli/screen.ts'
import { feedForever, feedOnce, pause } from './feed.ts'
import { jobsFor } from './jobs.ts'
import { printLines } from './lines.ts'
import { Watch } from './snapshot.ts'
import { renderFrame } from './view.ts'

const HELP = `npm start -- [--engine URL] [--port N] [--once]

  --engine URL   where the jobs are stored, or MILLRACE_ENGINE (default: sqlite:./millrace.db)
  --port N       the dashboard's port (default: 7420, or a free one if that is taken)
  --once         end after one round of jobs`

const FRAME_MS = 200

interface Settings {
  readonly url: string
  /** Null: the default. */
  readonly port: number | null
  readonly once: boolean
}

function readSettings(): Settings | null {
  const { values } = parseArgs({
    options: {
      engine: { type: 'string' },
      port: { type: 'string' },
      once: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return null
  return {
    url: values.engine ?? process.env.MILLRACE_ENGINE ?? 'sqlite:./millrace.db',
    port: values.port === undefined ? null : Number(values.port),
    once: values.once ?? false,
  }
}

async function tour(settings: Settings): Promise<void> {
  const stop = new AbortController()
  let stoppedAtMs = 0
  const onSignal = (): void => {
    // A second Ctrl-C stops at once: leases that are still held run out. npm forwards the first one to a process that has
    // received it already, so two at the same time count as one.
    if (stoppedAtMs > 0 && Date.now() - stoppedAtMs > 1_000) process.exit(130)
    stoppedAtMs ||= Date.now()
    stop.abort()
  }
  // Before the first await, so that a signal while the store is being opened ends the tour too.
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  const opening = open(settings.url)
  const stopped = new Promise<null>((resolve) => stop.signal.addEventListener('abort', () => resolve(null)))
  const mill = await Promise.race([opening, stopped])
  if (mill === null) {
    // No lease is held yet.
    process.exit(0)
  }
  try {
    await show(mill, settings, { stop, stopped })
  } finally {
    await mill.close()
  }
}

async function show(
  mill: Mill,
  settings: Settings,
  { stop, stopped }: { readonly stop: AbortController; readonly stopped: Promise<null> },
): Promise<void> {
  const live = process.stdout.isTTY === true && process.env.TERM !== 'dumb' && mill.engine.inspector !== undefined
  const jobs = jobsFor(mill.engine)
  const admin = createAdmin(mill, { jobs })
  try {
    const page = await listen(admin, settings.port)
    const view = live ? showLive(mill, settings.url, page, stop.signal) : showLines(mill, settings.url, page)
    // A view that cannot read the store ends the tour; the error is thrown where the view is awaited.
    view.catch(() => stop.abort())
    try {
      const starting = mill.work(jobs, { concurrency: 8, drain: '5s' })
      starting.catch(() => {})
      // A worker that is stopped while it starts ends with the mill.
      const worker = await Promise.race([starting, stopped])
      if (worker === null) return
      await (settings.once ? feedOnce : feedForever)(mill, stop.signal)
      stop.abort()
      await view
      console.log(worker.running === 0 ? 'Stopping.' : `Stopping: ${worker.running} running, up to 5 s to finish.`)
      await worker.stop('tour')
      await sayGoodbye(mill)
    } finally {
      stop.abort()
      await view.catch(() => {})
    }
  } finally {
    await admin.close()
  }
}

/** The given port, or the default, or any free one: two tours can run at once. */
async function listen(admin: Admin, port: number | null): Promise<string> {
  if (port !== null) return (await admin.listen({ port })).url
  const usual = await admin.listen({ port: PORT_DEFAULT }).catch(() => null)
  return (usual ?? (await admin.listen({ port: 0 }))).url
}

async function showLive(mill: Mill, url: string, page: string, signal: AbortSignal): Promise<void> {
  const watch = new Watch(mill, url, page)
  const screen = new Screen(process.stdout)
  const coloured = (process.env.NO_COLOR ?? '') === ''
  screen.enter()
  try {
    while (!signal.aborted) {
      const snapshot = await watch.look()
      screen.draw(renderFrame(snapshot, { columns: screen.columns, rows: screen.rows, coloured }))
      await pause(FRAME_MS, signal)
    }
  } finally {
    screen.leave()
  }
}

async function showLines(mill: Mill, url: string, page: string): Promise<void> {
  console.log(`Millrace tour on ${url}; Ctrl-C stops it`)
  console.log(`Dashboard: ${page}`)
  printLines(mill, (line) => console.log(line))
}

async function sayGoodbye(mill: Mill): Promise<void> {
  const counts = Object.values(await mill.counts())
  const total = (of: 'ready' | 'delayed' | 'inProgress' | 'completed' | 'dead'): number =>
    counts.reduce((sum, one) => sum + one[of], 0)
  const waiting = total('ready') + total('delayed')
  console.log(
    `Stopped: ${total('completed')} completed, ${total('dead')} dead, ${waiting} waiting, ${total('inProgress')} leased.`,
  )
  console.log('Look around: npm run -s millrace -- serve | stats | jobs | job <id>')
}

try {
  const settings = readSettings()
  if (settings === null) console.log(HELP)
  else await tour(settings)
} catch (error) {
  const usage = error instanceof TypeError && String(Reflect.get(error, 'code')).startsWith('ERR_PARSE_ARGS')
  const code = isMillraceError(error) ? ` (${error.code})` : ''
  console.error(`error: ${error instanceof Error ? error.message : String(error)}${code}`)
  process.exitCode = usage ? 2 : 1
}
