import { type Command, Option } from 'commander'
import type { Mill } from '../../client/mill.ts'
import { openTopics } from '../../engine/open.ts'
import type { TopicsOfBroker } from '../../engine/topics.ts'
import { OptionError } from '../../errors.ts'
import { ROLES } from '../../http/contract/route.ts'
import { type AdminToken, createAdmin, PORT_DEFAULT, type Topics } from '../../http/index.ts'
import type { AnyJob, Log } from '../../job/definition.ts'
import { startAlerting } from '../../observe/alerting/alerting.ts'
import { healthRules } from '../../observe/alerting/health-rules.ts'
import type { AlertRule } from '../../observe/alerting/rule.ts'
import { logSink } from '../../observe/alerting/sinks.ts'
import type { LagLimits } from '../../observe/watch/lag.ts'
import { type Cli, examples, type SharedOptions, wholeNumber, withStoredMillUntil } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import { LOG_LEVELS, type LogLevel, runUntilStopped } from '../until-stopped.ts'

interface ServeFlags extends SharedOptions, ServingFlags {
  readonly json?: true
  readonly logLevel: LogLevel
}

export function addServe(program: Command, cli: Cli): void {
  addServingOptions(
    program
      .command('serve')
      .summary('serve the HTTP API and the dashboard, without working')
      .description('Serve the HTTP API and the dashboard until SIGTERM or SIGINT. Then exit 0.')
      .argument(
        '[jobs...]',
        'modules (.ts, .js, .mjs) that define jobs: payloads are checked, and secrets in them hidden',
      ),
  )
    .addOption(new Option('--log-level <level>', 'the least that is logged').choices(LOG_LEVELS).default('info'))
    .addHelpText(
      'after',
      `${examples([
        ['millrace serve', `the jobs in ./millrace.db, at http://127.0.0.1:${PORT_DEFAULT}`],
        ['millrace serve jobs.ts --port 8080', 'with what jobs.ts defines, elsewhere'],
        ['millrace serve --host 0.0.0.0', 'for other machines, with tokens in MILLRACE_TOKENS'],
      ])}

Without a token it listens on this machine alone, and everyone on it may do everything.
A token is given as role:token or role/name:token, with the role viewer, operator or admin; the name stands in the audit.
Other users of the machine can see a command line: prefer MILLRACE_TOKENS, which takes several with spaces between them.`,
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<ServeFlags>()
      await serve(cli, async () => (modules.length === 0 ? [] : loadJobs(modules)), flags)
    })
}

/** A server has nothing to drain that a second signal could cut short. */
async function serve(cli: Cli, load: () => Promise<readonly AnyJob[]>, flags: ServeFlags): Promise<void> {
  await runUntilStopped(cli, load, flags, async ({ stop, log, jobs }) => {
    await withStoredMillUntil(stop, flags.engine, { log, clock: cli.clock, jobs }, async (mill) => {
      const starting = startServing(cli, mill, { jobs, flags, log })
      const serving = await stop.unlessStopped(starting, (late) => late.close())
      if (serving === null) return
      await stop.unlessStopped(new Promise(() => {}))
      await serving.close()
    })
  })
}

/** The HTTP API and the dashboard in this process, for `serve` and whoever serves beside its work. */

export interface ServingFlags extends SharedOptions {
  readonly port: number
  readonly host: string
  /** As they were given. */
  readonly token?: readonly string[]
  readonly allowHost?: readonly string[]
  readonly publicHealth?: true
  readonly json?: true
}

export function addServingOptions(command: Command): Command {
  return command
    .option('--port <n>', 'the port; 0 takes any that is free', wholeNumber, PORT_DEFAULT)
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .addOption(
      new Option('--token <role:token>', 'asked of every caller; may be given several times')
        .env('MILLRACE_TOKENS')
        .argParser(another),
    )
    .option('--allow-host <name>', 'one more name of this server; may be given several times', another)
    .option('--public-health', 'health and metrics take no token')
}

function another(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

const TOKEN = /^(?<role>[a-z]+)(?:\/(?<who>[^:]+))?:(?<token>\S+)$/

/**
 * Several may stand in one text, with spaces between them. They are read here and not as the command line is, which
 * would repeat what it cannot read: a secret in the wrong form is still one.
 */
export function parseTokens(texts: readonly string[]): readonly AdminToken[] {
  return texts.flatMap((text) => text.split(/\s+/).filter((part) => part !== '')).map(parseToken)
}

function parseToken(text: string): AdminToken {
  const { role: named, who, token } = TOKEN.exec(text)?.groups ?? {}
  const role = ROLES.find((one) => one === named)
  if (role !== undefined && token !== undefined) return { role, who: who ?? role, token }
  throw new OptionError(`a token is not in the form role:token or role/name:token, with one of ${ROLES.join(', ')}`)
}

export interface Serving {
  close(): Promise<void>
}

/** Whose lag is shown, and from where on it is too much, where queues are topics. */
export interface WatchedTopics {
  readonly groups: readonly string[]
  lagLimits(topic: string): LagLimits | null
}

/** Serves beside what a command does with its mill. */
export type Serve = (mill: Mill, jobs: readonly AnyJob[], log: Log, watched?: WatchedTopics) => Promise<Serving>

export const serveNothing: Serve = async () => ({ close: async () => {} })

/** How often alerts are looked at: soon enough for a page that somebody watches. */
const ALERTS_EVERY = '15s'

/** Starts before workers do, so that what they do is counted from the first job on. */
export async function startServing(
  { terminal, clock }: Cli,
  mill: Mill,
  options: {
    readonly jobs: readonly AnyJob[]
    readonly flags: ServingFlags
    readonly log: Log
    readonly rules?: readonly AlertRule[]
    readonly watched?: WatchedTopics
  },
): Promise<Serving> {
  const { jobs, flags, log, watched } = options
  const tokens = parseTokens(flags.token ?? [])
  const critical = jobs.filter((job) => job.critical).map((job) => job.type)
  const rules = options.rules ?? healthRules({ critical })
  const alerting = startAlerting(mill, { rules, sinks: [logSink(log)], every: ALERTS_EVERY, log, clock })
  const ends: (() => Promise<void>)[] = [() => alerting.stop()]
  const close = async (): Promise<void> => {
    await Promise.all(ends.map((end) => end()))
  }
  try {
    const broker = await openTopics(flags.engine, { clock, ...(watched && { groups: watched.groups }) })
    if (broker !== null) ends.push(() => broker.close())
    const hosts = flags.allowHost ?? []
    const publicHealth = flags.publicHealth ?? false
    const admin = createAdmin(mill, {
      ...{ jobs, log, clock, alerting, tokens, hosts, publicHealth },
      ...(broker !== null && { topics: topicsOf(broker, watched) }),
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

function topicsOf(broker: TopicsOfBroker, watched: WatchedTopics | undefined): Topics {
  return {
    desk: broker.desk,
    lags: () => broker.lags(),
    pending: () => broker.pendingByTopic(),
    limits: (topic) => watched?.lagLimits(topic) ?? null,
  }
}
