/**
 * What the command line offers beyond the library. The entry of the program registers it (`bin/millrace.ts`), so that
 * nothing in src names a workload. Every entry is loaded when a command asks for it.
 */
import type { Mill } from '../client/mill.ts'
import type { TopicsOfBroker } from '../engine/open.ts'
import { OptionError } from '../errors.ts'
import type { RouteTable } from '../http/index.ts'
import type { AnyJob, Log } from '../job/definition.ts'
import { nearest } from '../job/known-options.ts'
import type { Duty } from '../keeper/side-duties.ts'
import type { Alerting } from '../observe/alerts/alerting.ts'
import type { Alerter } from '../observe/alerts/dead-letter-alerts.ts'
import type { AlertRule } from '../observe/alerts/rule.ts'
import type { HealthEndpoint } from '../observe/health.ts'
import type { JoinedMill } from '../observe/joined-mills.ts'
import type { LagLimits } from '../observe/lag.ts'
import type { MakeInstrument } from '../observe/metrics/instrument.ts'
import type { StatsCollector } from '../observe/stats/stats.ts'
import type { Clock } from '../time/clock.ts'
import type { WorkerOptions } from '../worker/options.ts'
import type { JobTableCommands, WatchedTables } from './job-table-commands.ts'
import type { Column, Terminal } from './terminal.ts'

export type { JobTableCommands, OpenReaper, ReapedRow, WatchedTables } from './job-table-commands.ts'

export interface CliExtensions {
  /** By name: `millrace <name>`. */
  readonly commands: Readonly<Record<string, () => Promise<ExtensionCommand>>>
  /** By the name that `--preset` takes. */
  readonly presets: Readonly<Record<string, ListedPreset>>
  /** What serving adds to the endpoints, the scrape and the alerts. */
  readonly serving: () => Promise<{ readonly serving: ServingExtensions }>
  /** Pages of the dashboard, by name: each is there if its workload has something to show on the engine. */
  readonly pages: Readonly<Record<string, () => Promise<{ readonly openPage: OpenPage }>>>
  /** `--tables` of `millrace reap`, `migrate` and `doctor`. */
  readonly jobTables: () => Promise<{ readonly jobTables: JobTableCommands }>
  /** By the name that `millrace migrate --workload` takes. */
  readonly workloads: Readonly<Record<string, () => Promise<MigrateWorkload>>>
}

/** Creates or upgrades the tables of a workload and returns the statements; with `dryRun` it only returns them. */
export type MigrateWorkload = (
  url: string,
  options: { readonly dryRun: boolean; readonly nowMs: number },
) => Promise<readonly string[]>

/**
 * A command as data, so that help, completion and the reference know it while its code is loaded only to run it. It has
 * either commands of its own or `load`.
 */
export interface ExtensionCommand {
  /** One line for the list of commands. */
  readonly summary: string
  /** Whole sentences for its help. */
  readonly description: string
  readonly arguments?: readonly ExtensionWord[]
  readonly options?: readonly ExtensionOption[]
  readonly examples: readonly (readonly [command: string, meaning: string])[]
  /** Below the examples. */
  readonly remarks?: string
  readonly commands?: Readonly<Record<string, ExtensionCommand>>
  readonly load?: () => Promise<{ readonly run: RunCommand }>
}

export interface ExtensionWord {
  /** As commander writes it: '<id>', '[query]', '--limit <n>', '--yes'. */
  readonly form: string
  readonly meaning: string
}

export interface ExtensionOption extends ExtensionWord {
  /** What its value must be; default: any text. */
  readonly kind?: 'whole number' | 'duration'
  readonly default?: string | number
  readonly choices?: readonly string[]
  /** Default: false. */
  readonly isRequired?: boolean
}

/** Errors decide the exit code, as for every command: 2 for an `OptionError`, 1 for most others. */
export type RunCommand = (call: CommandCall) => Promise<void>

export interface CommandCall {
  /** Without the optional ones that were left out. */
  readonly arguments: readonly string[]
  /** By name in camel case. A duration is in milliseconds. */
  readonly options: Readonly<Record<string, unknown>>
  /** Null when neither --engine nor MILLRACE_ENGINE names one. */
  readonly engine: string | null
  readonly json: boolean
  /** The user's name, for the audit. */
  readonly who: string
  readonly clock: Clock
  readonly terminal: Terminal
  /** Prints a table. Foreign text in cells cannot break it. */
  table(columns: readonly Column[], rows: readonly (readonly string[])[]): void
  /** Prints a line for each fact. */
  facts(of: readonly (readonly [name: string, value: string])[]): void
}

export interface ServingExtensions {
  /** Called before the workers start. What it returns is used until the process ends. */
  observe(served: ObservedProcess): Promise<Observing>
}

export interface ObservedProcess {
  /** All mills of the process, as one. */
  readonly mill: JoinedMill
  /** Null where queues are no topics, and for a worker, which serves nothing but its own metrics. */
  readonly broker: TopicsOfBroker | null
  /** Of a preset. */
  readonly watched: WatchedTopics | null
  readonly clock: Clock
  readonly log: Log
}

/** What a preset expects on a broker, for alerts and limits. */
export interface WatchedTopics {
  /** The consumer groups whose lag is shown. */
  readonly groups: readonly string[]
  /** What heartbeats call the workers that must be there. */
  readonly workers: readonly string[]
  readonly topics: readonly WatchedTopic[]
}

export interface WatchedTopic {
  readonly topic: string
  /** Where its dead letters go. */
  readonly dlq: string
  readonly lag: LagLimits
  /** Its dead letters are critical, and stay until they are resolved. */
  readonly isFinancial: boolean
}

export interface Observing {
  /** By path. */
  readonly healthEndpoints: Readonly<Record<string, HealthEndpoint>>
  readonly instruments: readonly MakeInstrument[]
  readonly routes: RouteTable
  readonly duties: readonly Duty[]
  /** Starts the alerting with its own rules beside those that every mill has. */
  startAlerting(start: StartAlerting): Alerting
}

/** `watch` is read before the rules are evaluated. */
export type StartAlerting = <Reading>(
  rules: readonly AlertRule<Reading>[],
  watch: { read(): Promise<Reading> } | null,
) => Alerting

/** Returns null where the workload keeps nothing on the engine. */
export type OpenPage = (parts: {
  readonly engine: string
  readonly mill: Mill
  readonly clock: Clock
  readonly log: Log
  /** The user's own job tables, if --tables names some. */
  readonly tables: WatchedTables | null
}) => Promise<ServedPage | null>

/** A page of the dashboard, and the routes that it asks. */
export interface ServedPage {
  readonly routes: RouteTable
  close(): Promise<void>
}

/** A preset as data, so that help lists it while its code is loaded only to run it. */
export interface ListedPreset {
  /** What it runs, in one line. */
  readonly summary: string
  /** The engine when neither --engine nor MILLRACE_ENGINE names one. Null: one must be named. */
  readonly engineDefault: string | null
  readonly load: () => Promise<{ readonly preset: Preset }>
}

/** A ready-made set of workers for `millrace start --preset`, and `serve` and `work`. */
export interface Preset {
  /** Which of the options that belong to presets it takes, and whether modules with jobs of the user. */
  readonly takes: readonly ('config' | 'record' | 'instance' | 'jobs')[]
  /** Throws an OptionError when it cannot run on that engine, or when its configuration is wrong. */
  open(options: PresetOptions): Promise<OpenPreset>
}

export interface PresetOptions {
  readonly engine: string
  /** The file of --config. */
  readonly config: string | null
  /** The number of --instance: tells the workers of several processes apart. Default: 1. */
  readonly instance: number
  /** Writes a line of --record. */
  readonly record: (deed: Deed) => void
  /** Jobs with handlers, of the modules that the user named. */
  readonly jobs: readonly AnyJob[]
  readonly log: Log
  readonly clock: Clock
}

export interface OpenPreset {
  readonly workers: readonly PresetWorker[]
  /** Creates what is missing, before anything runs. */
  prepare?(mill: Mill): Promise<void>
  readonly watched?: WatchedTopics
  /** Evaluated beside the rules that every mill has. */
  readonly alertRules?: readonly AlertRule[]
  /** What the rules judge, where the preset knows the figures of all processes; default: those of this one. */
  readonly stats?: Pick<StatsCollector, 'collect'>
  /** Gets one alert for each job that becomes a dead letter here. */
  readonly alerter?: Alerter
  readonly instruments?: readonly MakeInstrument[]
  /** Where the metrics have a prefix of their own; --metrics-prefix wins. */
  readonly metricsPrefix?: string
  /** Health in the preset's own form, by path. */
  readonly healthEndpoints?: Readonly<Record<string, HealthEndpoint>>
  /** By name, with the preset's own configuration. They are closed by `close`. */
  readonly pages?: Readonly<Record<string, RouteTable>>
  /** Routes without a page of the dashboard, for the mill of the first worker. */
  routes?(mill: Mill): RouteTable
  readonly duties?: readonly Duty[]
  /** Commands that show it at work, and what each of them shows. */
  readonly examples: readonly (readonly [command: string, what: string])[]
  /** Called once, when the workers and duties have stopped, or when the start failed. */
  close?(): Promise<void>
}

export interface PresetWorker {
  /** Its id in logs, heartbeats and dead letters; default: one that no other process has. */
  readonly id?: string
  /** What heartbeats call it; default: the type of its jobs. */
  readonly name?: string
  /** Workers that each read all of a topic need their own group, so every worker has its own URL. */
  readonly engine: string
  readonly jobs: readonly AnyJob[]
  /** Those of the command line win. */
  readonly options?: Omit<WorkerOptions, 'id' | 'name' | 'signals'>
}

/** What a preset's handler did, as one line of the record. */
export type Deed = Readonly<Record<string, unknown>>

export function presetNamed({ presets }: CliExtensions, name: string): ListedPreset {
  return named('preset', presets, name)
}

/** A line for each preset: what it runs, and on which engine. */
export function presetLines({ presets }: CliExtensions): readonly string[] {
  return Object.entries(presets).map(([name, { summary, engineDefault }]) => {
    const engine = engineDefault === null ? 'needs --engine' : `engine by default: ${engineDefault}`
    return `- ${name}: ${summary}; ${engine}`
  })
}

export function loadWorkload({ workloads }: CliExtensions, name: string): Promise<MigrateWorkload> {
  return named('workload', workloads, name)()
}

function named<Entry>(kind: string, entries: Readonly<Record<string, Entry>>, name: string): Entry {
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
  if (entry !== undefined) return entry
  const near = nearest(name, Object.keys(entries))
  const all = namesOf(entries)
  const hint = near === null ? `there are ${all}` : `did you mean '${near}'? There are ${all}`
  throw new OptionError(`there is no ${kind} '${name}'; ${hint}`)
}

export function namesOf(entries: object): string {
  return new Intl.ListFormat('en').format(Object.keys(entries).map((name) => `'${name}'`))
}
