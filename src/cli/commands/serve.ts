import { type Command, Option } from 'commander'
import type { Mill } from '../../client/mill.ts'
import type { TopicsOfBroker } from '../../engine/open.ts'
import { openTopics } from '../../engine/open.ts'
import { OptionError } from '../../errors.ts'
import { ROLES } from '../../http/contract/route.ts'
import type { AdminToken, RouteTable } from '../../http/index.ts'
import { HOST_DEFAULT, PORT_DEFAULT } from '../../http/server.ts'
import type { AnyJob, Log } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { AlertRule } from '../../observe/alerts/rule.ts'
import { joinMills } from '../../observe/joined-mills.ts'
import type { LagLimits, ObservedTopics } from '../../observe/lag.ts'
import type { MakeInstrument } from '../../observe/metrics/instrument.ts'
import { startSampling } from '../../observe/sampling/sampler.ts'
import type { Clock } from '../../time/clock.ts'
import { metricsPrefixOption, portNumber, repeated } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import type { CliExtensions } from '../extensions.ts'
import { loadJobs } from '../modules.ts'
import { type LogLevel, logLevelOption, runUntilStopped, SIGHUP_HELP, withStoredMillUntil } from '../until-stopped.ts'

interface ServeFlags extends ServingFlags {
  readonly logLevel: LogLevel
}

export function addServe(program: Command, cli: Cli): void {
  addServingOptions(
    program
      .command('serve')
      .summary('serve the HTTP API and the dashboard without a worker')
      .description('Serve the HTTP API and the dashboard until SIGTERM or SIGINT, then exit 0.')
      .argument('[jobs...]', 'modules (.ts, .js, .mjs) that define jobs, to check payloads and hide secrets in them'),
  )
    .addOption(logLevelOption())
    .addHelpText(
      'after',
      `${examples([
        ['millrace serve', `the jobs in ./millrace.db, at http://127.0.0.1:${PORT_DEFAULT}`],
        ['millrace serve jobs.ts --port 8080', 'with the definitions of jobs.ts, on another port'],
        ['millrace serve --host 0.0.0.0', 'for other machines; set tokens in MILLRACE_TOKENS'],
      ])}

Without a token it listens on this machine only, and every user of the machine has full access.
A token has the form role:token or role/name:token; the roles are viewer, operator and admin, and the audit shows the name.
Other users of the machine can read a command line: prefer MILLRACE_TOKENS, which takes several tokens separated by spaces.
It stops within a moment, so a second signal changes nothing. ${SIGHUP_HELP}`,
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<ServeFlags>()
      await serve(cli, async () => (modules.length === 0 ? [] : loadJobs(modules)), flags)
    })
}

async function serve(cli: Cli, load: () => Promise<readonly AnyJob[]>, flags: ServeFlags): Promise<void> {
  await runUntilStopped(cli, load, flags, async ({ stop, log, loaded: jobs }) => {
    const options = { log, clock: cli.clock, jobs, ...omitUndefined({ presence: flags.presence }) }
    await withStoredMillUntil(stop, flags.engine, options, async (mill) => {
      const starting = startServing(cli, mill, { jobs, flags, log })
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
  readonly publicHealth?: true
  readonly metricsPrefix?: string
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
    .option('--public-health', 'health and metrics need no token')
    .addOption(metricsPrefixOption())
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

/** The consumer groups whose lag is shown, and the limits of it, where queues are topics. */
export interface WatchedTopics {
  readonly groups: readonly string[]
  lagLimits(topic: string): LagLimits | null
}

/** Serves the mill of another command. */
export type Serve = (mill: Mill, jobs: readonly AnyJob[], log: Log) => Promise<Serving>

export const serveNothing: Serve = async () => ({ close: async () => {} })

const ALERTS_EVERY = '15s'

/** Start it before the workers, so that metrics count from the first job. */
export async function startServing(
  { terminal, clock, extensions }: Cli,
  mill: Mill,
  options: {
    readonly jobs: readonly AnyJob[]
    readonly flags: ServingFlags
    readonly log: Log
    /** More mills of this process, whose work is counted too. */
    readonly others?: readonly Mill[]
    readonly watched?: WatchedTopics | undefined
    readonly alertRules?: readonly AlertRule[] | undefined
    readonly instruments?: readonly MakeInstrument[] | undefined
    /** By name. Those of workloads are added. */
    readonly pages?: Readonly<Record<string, RouteTable>> | undefined
  },
): Promise<Serving> {
  const { jobs, flags, log, others = [], watched, alertRules = [], instruments = [], pages = {} } = options
  const tokens = flags.token === undefined ? undefined : parseTokens(flags.token)
  const critical = jobs.filter((job) => job.critical).map((job) => job.type)
  // The API and the dashboard are large: only commands that serve load them.
  const [{ createAdmin }, { attachMetrics, attachStats, healthRules, logSink, startAlerting }, { serving }] =
    await Promise.all([import('../../http/index.ts'), import('../../observe/index.ts'), extensions.serving()])
  const rules = [...healthRules({ critical }), ...alertRules]
  const mills = joinMills([mill, ...others])
  const stats = attachStats(mills, { clock })
  const alerting = startAlerting(mills, { rules, sinks: [logSink(log)], every: ALERTS_EVERY, log, clock, stats })
  const alertsFiring = (): number => alerting.current().filter(({ status }) => status === 'firing').length
  const sampler = startSampling(mills, { clock, alertsFiring })
  const ends = [() => alerting.stop(), async () => stats.detach(), async () => sampler.close()]
  const close = async (): Promise<void> => {
    await Promise.all(ends.map((end) => end()))
  }
  try {
    const added = [...serving.instruments(mill, clock), ...instruments]
    const prefix = omitUndefined({ prefix: flags.metricsPrefix })
    const metrics = await attachMetrics(mills, { instruments: added, clock, ...prefix })
    ends.push(async () => metrics.detach())
    const broker = await openTopics(flags.engine, { clock, ...(watched && { groups: watched.groups }) })
    if (broker !== null) ends.push(() => broker.close())
    const served = { ...pages, ...(await openPages(extensions, { mill, flags, log, clock, known: pages, ends })) }
    const hosts = flags.allowHost ?? []
    const publicHealth = flags.publicHealth ?? false
    const admin = createAdmin(mill, {
      ...{ jobs, log, clock, alerting, metrics, sampler, hosts, publicHealth, ...(tokens !== undefined && { tokens }) },
      healthEndpoints: serving.healthEndpoints,
      pages: Object.keys(served),
      ...(broker !== null && { topics: topicsOf(broker, watched) }),
      routes: Object.assign({}, ...Object.values(served), broker === null ? {} : await serving.routes(broker, clock)),
    })
    ends.push(() => admin.close())
    const { url } = await admin.listen({ port: flags.port, host: flags.host })
    terminal.print(flags.json ? JSON.stringify({ url }) : `Millrace is at ${terminal.paint('bold', url)}`)
    return { close }
  } catch (error) {
    await close()
    throw error
  }
}

interface PageParts {
  readonly mill: Mill
  readonly flags: ServingFlags
  readonly log: Log
  readonly clock: Clock
  /** Those that a preset has opened. */
  readonly known: object
  readonly ends: (() => Promise<void>)[]
}

async function openPages(
  { pages }: CliExtensions,
  { mill, flags, log, clock, known, ends }: PageParts,
): Promise<Readonly<Record<string, RouteTable>>> {
  const opened: Record<string, RouteTable> = {}
  for (const [name, load] of Object.entries(pages)) {
    if (Object.hasOwn(known, name)) continue
    const page = await (await load()).openPage({ engine: flags.engine, mill, clock, log })
    if (page === null) continue
    ends.push(() => page.close())
    opened[name] = page.routes
  }
  return opened
}

function topicsOf(broker: TopicsOfBroker, watched: WatchedTopics | undefined): ObservedTopics {
  return {
    lags: () => broker.lags(),
    pending: () => broker.pendingByTopic(),
    limits: (topic) => watched?.lagLimits(topic) ?? null,
  }
}
