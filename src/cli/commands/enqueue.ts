import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import { OptionError, UnknownTypeError } from '../../errors.ts'
import { type AnyJob, defineJob } from '../../job/definition.ts'
import { omitUndefined } from '../../job/known-options.ts'
import type { EnqueueOptions } from '../../job/options.ts'
import { decodePayload, duration, parsePayload, parseTenant, parseTime, wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withStoredMill } from '../cli.ts'
import { loadJobs } from '../modules.ts'

interface EnqueueFlags extends SharedOptions {
  readonly name?: string
  readonly key?: string
  readonly latest?: string
  readonly seq?: number
  readonly priority?: number
  readonly delay?: number
  readonly at?: string
  readonly attempts?: number
  readonly timeout?: number
  readonly tenant?: string
  readonly tag?: readonly string[]
  readonly after?: string
  readonly ifDead?: string
  readonly jobs?: readonly string[]
}

export function addEnqueue(program: Command, cli: Cli): void {
  program
    .command('enqueue')
    .summary('add one job')
    .description('Add one job and print its id.')
    .argument('<type>', 'the type of the job')
    .argument('<payload>', 'the payload as JSON, or - for standard input')
    .option('--name <name>', 'what the job is called within its type, for a queue of many names')
    .option('--key <key>', 'at most one live job per key; another one is a duplicate')
    .option('--latest <key>', 'the newest job of a key supersedes older ones')
    .option('--seq <n>', 'with --latest: the version; one older than the last is stale', wholeNumber)
    .option('--priority <n>', '1 (first) to 10 (last)', wholeNumber)
    .option('--delay <duration>', 'run it after this time, such as 10m', duration)
    .option('--at <time>', 'run it at this time, such as 2030-01-31T09:00:00Z')
    .option('--attempts <n>', 'at most this many starts', wholeNumber)
    .option('--timeout <duration>', 'the time limit of one start', duration)
    .option('--tenant <org[/workspace]>', 'the tenant')
    .option('--tag <tags...>', 'what the job can be found by, such as import-7')
    .option('--after <ids>', 'start it when these jobs, separated by commas, have completed')
    .option('--if-dead <policy>', 'with --after, if one of them dies: wait for its replay, run anyway, or die')
    .option('--jobs <modules...>', 'modules that define the type, to use its schema and defaults')
    .addHelpText('after', HELP)
    .action((type: string, payload: string, _options, command: Command) =>
      enqueue(cli, type, payload, command.optsWithGlobals<EnqueueFlags>()),
    )
}

const HELP = `${examples([
  [`millrace enqueue greet '{"name":"Ada"}'`, 'as soon as a worker is free'],
  [`millrace enqueue greet '{"name":"Ada"}' --jobs jobs.ts`, 'checked against the schema in jobs.ts'],
  [`millrace enqueue bill '{"id":42}' --key bill-42 --delay 10m`, 'in ten minutes, and only once'],
  [`millrace enqueue index '{}' --latest docs --priority 9`, 'replaces an older one that still waits'],
  [`millrace enqueue merge '{}' --after 01K5X…,01K5Y… --if-dead run`, 'when both have completed or died'],
  [`millrace enqueue mail '{"to":"ann"}' --tag import-7`, 'found again by millrace jobs --search tag:import-7'],
  ['jq -c . big.json | millrace enqueue import -', 'the payload from standard input'],
])}

Without --jobs, the payload must only be JSON, and the defaults are priority 5 and 3 attempts. A payload that does not fit
its schema becomes a dead letter when a worker takes it.
The status is enqueued, duplicate (--key; with the id of the first job), replaced or stale (--latest).`

async function enqueue({ terminal, clock }: Cli, type: string, payload: string, flags: EnqueueFlags): Promise<void> {
  const job = await definitionOf(type, flags.jobs)
  const value = parsePayload(payload === '-' ? decodePayload(await buffer(process.stdin)) : payload)
  const options = toOptions(flags)
  const { id, status } = await withStoredMill(flags.engine, { clock }, (mill) => mill.enqueue(job, value, options))
  terminal.print(flags.json ? JSON.stringify({ id, type, status }) : `${id} ${status}`)
}

async function definitionOf(type: string, modules: readonly string[] | undefined): Promise<AnyJob> {
  if (modules === undefined) return defineJob({ type })
  const known = await loadJobs(modules)
  const job = known.find((one) => one.type === type)
  if (job === undefined)
    throw new UnknownTypeError(
      type,
      known.map((one) => one.type),
    )
  return job
}

function toOptions(flags: EnqueueFlags): EnqueueOptions {
  const { name, key, latest, seq, priority, delay, attempts, timeout, at, tenant, tag: tags, after, ifDead } = flags
  if (seq !== undefined && latest === undefined)
    throw new OptionError('--seq orders the versions of a latest key; add --latest')
  return omitUndefined({
    name,
    key,
    latest: latest === undefined || seq === undefined ? latest : { key: latest, seq },
    priority,
    delay,
    at: at === undefined ? undefined : parseTime(at, 'at'),
    attempts,
    timeout,
    tenant: tenant === undefined ? undefined : parseTenant(tenant),
    tags,
    after: after?.split(',').map((id) => id.trim()),
    ifDead: ifDead === undefined ? undefined : parsePolicy(ifDead),
  })
}

function parsePolicy(policy: string): NonNullable<EnqueueOptions['ifDead']> {
  if (policy === 'wait' || policy === 'run' || policy === 'die') return policy
  throw new OptionError(`'if-dead' is '${policy}'; give wait, run or die`)
}
