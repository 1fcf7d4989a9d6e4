import { Command, Option } from 'commander'
import type { Mill } from '../../client/mill.ts'
import type { TopicsOfBroker } from '../../engine/open.ts'
import { openTopics } from '../../engine/open.ts'
import { OptionError } from '../../errors.ts'
import { HOST_DEFAULT, PORT_DEFAULT } from '../../http/address.ts'
import { ROLES } from '../../http/contract/route.ts'
import type { AdminToken, RouteTable } from '../../http/index.ts'
import type { AnyJob, Log } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { startDuties } from '../../keeper/side-duties.ts'
import type { AlertRule } from '../../observe/alerts/rule.ts'
import type { HealthEndpoint } from '../../observe/health.ts'
import { type JoinedMill, joinMills } from '../../observe/joined-mills.ts'
import type { ObservedTopics } from '../../observe/lag.ts'
import type { MakeInstrument } from '../../observe/metrics/instrument.ts'
import { startSampling } from '../../observe/sampling/sampler.ts'
import type { StatsCollector } from '../../observe/stats/stats.ts'
import type { Clock } from '../../time/clock.ts'
import { metricsPrefixOption, portNumber, repeated, tableNames } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import type { CliExtensions, Observing, WatchedTables, WatchedTopics } from '../extensions.ts'
import { loadJobs } from '../modules.ts'
import { logLevelOption, runUntilStopped, SIGHUP_HELP, withStoredMillUntil } from '../until-stopped.ts'
import { addPresetOptions, type PresetFlags, presetFlags, refusePresetFlags, runPreset } from './preset.ts'

type ServeFlags = PresetFlags & ServingFlags

export function addServe(program: Command, cli: Cli): void {
  const command = program
    .command('serve')
    .summary('serve the HTTP API and the dashboard without a worker')
    .description('Serve the HTTP API and the dashboard until SIGTERM or SIGINT, then exit 0.')
    .argument('[jobs...]', 'modules (.ts, .js, .mjs) that define jobs, to check payloads and hide secrets in them')
  addPresetOptions(addServingOptions(command), cli)
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `${examples([
        ['millrace serve', `the jobs in ./millrace.db, at http://127.0.0.1:${PORT_DEFAULT}`],
        ['millrace serve jobs.ts --port 8080', 'with the definitions of jobs.ts, on another port'],
        ['millrace serve --tables jobs,asr_jobs --tables-url postgres://localhost/media', 'also your own job tables'],
        ['millrace serve --host 0.0.0.0', 'for other machines; set tokens in MILLRACE_TOKENS'],
        ['millrace serve --preset escrow --engine kafka://127.0.0.1:9092', 'for workers of docs/escrow.md elsewhere'],
      ])}

Without a token it listens on this machine only, and every user of the machine has full access.
A token has the form role:token or role/name:token; the roles are viewer, operator and admin, and the audit shows the name.
Other users of the machine can read a command line: prefer MILLRACE_TOKENS, which takes several tokens separated by spaces.
It stops within a moment, so a second signal changes nothing. ${SIGHUP_HELP}`,
    )
    .action((modules: readonly string[], _options, self: Command) => {
      const flags = presetFlags<ServeFlags>(self)
      if (flags.preset === undefined) return serve(cli, modules, flags)
      return runPreset(cli, flags.preset, flags, { modules, worker: null, serve: (served) => serveAll(cli, served) })
    })
}

async function serve(cli: Cli, modules: readonly string[], flags: ServeFlags): Promise<void> {
  refusePresetFlags(flags)
  const load = async (): Promise<readonly AnyJob[]> => (modules.length === 0 ? [] : loadJobs(modules))
  await runUntilStopped(cli, load, flags, async ({ stop, log, loaded: jobs }) => {
    const options = { log, clock: cli.clock, jobs, ...omitUndefined({ presence: flags.presence }) }
    await withStoredMillUntil(stop, flags.engine, options, async (mill) => {
      const starting = serveAll(cli, flags)(mill, { jobs, log })
      const serving = await stop.unlessStopped(starting, (late) => late.close())
      if (serving === null) return
      await stop.unlessStopped(new Promise(() => {}))
      await serving.close()
    })
  })
}

export interface ServingFlags extends SharedOptions {
  readonly port: number
  readonly host: string
  readonly token?: readonly string[]
  readonly allowHost?: readonly string[]
  readonly trustUserHeader?: string
  readonly publicHealth?: true
  readonly metricsPrefix?: string
  readonly tables?: readonly string[]
  readonly tablesUrl?: string
}

export function addServingOptions(command: Command): Command {
  return command
    .option('--port <n>', 'the port; 0 takes any free one', portNumber, PORT_DEFAULT)
    .option('--host <address>', 'the address to listen on', HOST_DEFAULT)
    .addOption(
      new Option('--token <role:token>', 'a token that callers must send; can be repeated')
        .env('MILLRACE_TOKENS')
        .argParser(repeated),
    )
    .option('--allow-host <name>', 'another host name of this server; can be repeated', repeated)
    .option('--trust-user-header <name>', 'a header in which your proxy names its user, for the audit')
    .option('--public-health', 'health and metrics need no token')
    .addOption(metricsPrefixOption())
    .addOption(
      new Option('--tables <names>', 'show your own job tables on Postgres too')
        .env('MILLRACE_TABLES')
        .argParser(tableNames),
    )
    .addOption(
      new Option('--tables-url <url>', 'the database of --tables (default: that of --engine)').env(
        'MILLRACE_TABLES_URL',
      ),
    )
}

/** For a command that serves nothing. What the environment says may be meant for other processes. */
export function refuseServingOptions(command: Command): void {
  const given = addServingOptions(new Command()).options.find(
    (option) => command.getOptionValueSource(option.attributeName()) === 'cli',
  )
  if (given !== undefined) throw new OptionError(`--no-http serves nothing; leave out ${given.long}`)
}

function watchedTables({ engine, tables, tablesUrl }: ServingFlags): WatchedTables | null {
  if (tables !== undefined) return { names: tables, url: tablesUrl ?? engine, environment: process.env }
  if (tablesUrl === undefined) return null
  throw new OptionError('--tables-url is the database of job tables; name them with --tables')
}

const TOKEN = /^(?<role>[a-z]+)(?:\/(?<who>[^:]+))?:(?<token>\S+)$/

/** Not an option parser, because commander's complaint would repeat the value: a malformed token is still a secret. */
export function parseTokens(texts: readonly string[]): readonly AdminToken[] {
  const parts = texts.flatMap((text) => text.split(/\s+/).filter((part) => part !== ''))
  if (parts.length > 0) return parts.map(parseToken)
  // Mostly a secret that was not found, which must not open the server to every user of the machine.
  throw new OptionError(`MILLRACE_TOKENS or --token is empty; give role:token, or unset it to run without tokens`)
}

function parseToken(text: string): AdminToken {
  const { role: named, who, token } = TOKEN.exec(text)?.groups ?? {}
  const role = ROLES.find((one) => one === named)
  if (role !== undefined && token !== undefined) return { role, who: who ?? role, token }
  throw new OptionError(
    `a token does not have the form role:token or role/name:token, with one of the roles ${ROLES.join(', ')}`,
  )
}

export interface Serving {
  close(): Promise<void>
}

/** What a command serves. */
export interface ServedProcess {
  readonly jobs: readonly AnyJob[]
  readonly log: Log
  /** More mills of this process, whose work is counted too. */
  readonly others?: readonly Mill[]
  /** What workers of any process run on each of the mills. Left out: what those of this process do. */
  readonly worked?: readonly (readonly string[])[]
  readonly watched?: WatchedTopics | undefined
  readonly alertRules?: readonly AlertRule[] | undefined
  /** What the rules judge; default: the figures of this process. */
  readonly stats?: Pick<StatsCollector, 'collect'>
  readonly instruments?: readonly MakeInstrument[] | undefined
  /** Default: that of every mill. --metrics-prefix wins. */
  readonly metricsPrefix?: string
  /** Beside those of workloads. */
  readonly healthEndpoints?: Readonly<Record<string, HealthEndpoint>>
  /** By name. Those of workloads are added. */
  readonly pages?: Readonly<Record<string, RouteTable>> | undefined
  routes?(mill: Mill): RouteTable
}

/** Serves the mill of another command. Start it before the workers, so that metrics count from the first job. */
export type Serve = (mill: Mill, served: ServedProcess) => Promise<Serving>

export const serveNothing: Serve = async () => ({ close: async () => {} })

export function serveAll(cli: Cli, flags: ServingFlags): Serve {
  return (mill, served) => startServing(cli, mill, { ...served, flags })
}

const ALERTS_EVERY = '15s'

async function startServing(
  { terminal, clock, extensions }: Cli,
  mill: Mill,
  served: ServedProcess & { readonly flags: ServingFlags },
): Promise<Serving> {
  const { jobs, flags, log, others = [], watched = null, instruments = [], pages = {} } = served
  const tokens = flags.token === undefined ? undefined : parseTokens(flags.token)
  const tables = watchedTables(flags)
  // The API and the dashboard are large: only commands that serve load them.
  const [{ createAdmin }, { attachMetrics }, { serving }] = await Promise.all([
    import('../../http/index.ts'),
    import('../../observe/index.ts'),
    extensions.serving(),
  ])
  // Ended in reverse: duties and alerts use what is opened before them.
  await using ends = new AsyncDisposableStack()
  const mills = joinMills([mill, ...others], served.worked)
  const broker = await openTopics(flags.engine, { clock, ...(watched && { groups: watched.groups }) })
  if (broker !== null) ends.defer(() => broker.close())
  const observing = await serving.observe({ mill: mills, broker, watched, clock, log })
  const { alerting, sampler, stop } = await startWatching(mills, observing, { ...served, clock })
  ends.defer(stop)
  const metrics = await attachMetrics(mills, {
    ...{ clock, instruments: [...observing.instruments, ...instruments] },
    ...omitUndefined({ prefix: flags.metricsPrefix ?? served.metricsPrefix }),
  })
  ends.defer(async () => metrics.detach())
  const shown = { ...pages, ...(await openPages(extensions, { mill, flags, tables, log, clock, known: pages, ends })) }
  const hosts = flags.allowHost ?? []
  const publicHealth = flags.publicHealth ?? false
  const admin = createAdmin(mill, {
    ...{ jobs, log, clock, alerting, metrics, sampler, hosts, publicHealth, ...(tokens !== undefined && { tokens }) },
    ...omitUndefined({ trustUserHeader: flags.trustUserHeader }),
    healthEndpoints: { ...observing.healthEndpoints, ...served.healthEndpoints },
    pages: Object.keys(shown),
    ...(broker !== null && { topics: topicsOf(broker, watched) }),
    // Each of the mills knows the letters of its own group.
    ...(broker !== null && others.length > 0 && { deadLetters: broker.deadLetters }),
    routes: Object.assign({}, ...Object.values(shown), served.routes?.(mill), observing.routes),
  })
  ends.defer(() => admin.close())
  ends.defer(startDuties(observing.duties, { clock, log }))
  const { url } = await admin.listen({ port: flags.port, host: flags.host })
  terminal.print(flags.json ? JSON.stringify({ url }) : `Millrace is at ${terminal.paint('bold', url)}`)
  const opened = ends.move()
  return { close: () => opened.disposeAsync() }
}

/** Alerts, and the samples for pages and charts. */
async function startWatching(
  mills: JoinedMill,
  observing: Observing,
  { jobs, log, alertRules = [], stats: judged, clock }: ServedProcess & { readonly clock: Clock },
) {
  const { attachStats, healthRules, logSink, startAlerting } = await import('../../observe/index.ts')
  const critical = jobs.filter((job) => job.critical).map((job) => job.type)
  const own = [...healthRules({ critical }), ...alertRules]
  const stats = attachStats(mills, { clock })
  const settings = { sinks: [logSink(log)], every: ALERTS_EVERY, log, clock, stats: { ...stats, ...judged } } as const
  const alerting = observing.startAlerting((rules, watch) =>
    startAlerting(mills, { ...settings, rules: [...own, ...rules], ...(watch !== null && { watch }) }),
  )
  const alertsFiring = (): number => alerting.current().filter(({ status }) => status === 'firing').length
  const sampler = startSampling(mills, { clock, alertsFiring })
  const stop = async (): Promise<void> => {
    sampler.close()
    await alerting.stop()
    stats.detach()
  }
  return { alerting, sampler, stop }
}

interface PageParts {
  readonly mill: Mill
  readonly flags: ServingFlags
  readonly tables: WatchedTables | null
  readonly log: Log
  readonly clock: Clock
  /** Those that a preset has opened. */
  readonly known: object
  readonly ends: AsyncDisposableStack
}

async function openPages(
  { pages }: CliExtensions,
  { mill, flags, tables, log, clock, known, ends }: PageParts,
): Promise<Readonly<Record<string, RouteTable>>> {
  const opened: Record<string, RouteTable> = {}
  for (const [name, load] of Object.entries(pages)) {
    if (Object.hasOwn(known, name)) continue
    const page = await (await load()).openPage({ engine: flags.engine, mill, clock, log, tables })
    if (page === null) continue
    ends.defer(() => page.close())
    opened[name] = page.routes
  }
  return opened
}

function topicsOf(broker: TopicsOfBroker, watched: WatchedTopics | null): ObservedTopics {
  const limits = new Map(watched?.topics.map(({ topic, lag }) => [topic, lag]))
  return {
    lags: () => broker.lags(),
    pending: () => broker.pendingByTopic(),
    limits: (topic) => limits.get(topic) ?? null,
  }
}
