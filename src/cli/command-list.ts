/** The commands by name, in the order of the help. Each is loaded when it is called, because most need few of the others. */
import type { Command } from 'commander'
import type { Cli } from './cli.ts'

/** Adds a command, with its options and what runs it, to the program. */
export type AddCommand = (program: Command, cli: Cli) => void

type LoadCommand = () => Promise<AddCommand>

const COMMANDS: Readonly<Record<string, LoadCommand>> = {
  start: async () => (await import('./commands/start.ts')).addStart,
  work: async () => (await import('./commands/work.ts')).addWork,
  keep: async () => (await import('./commands/keep.ts')).addKeep,
  serve: async () => (await import('./commands/serve.ts')).addServe,
  enqueue: async () => (await import('./commands/enqueue.ts')).addEnqueue,
  jobs: async () => (await import('./commands/jobs.ts')).addJobs,
  job: async () => (await import('./commands/job.ts')).addJob,
  explain: async () => (await import('./commands/job.ts')).addExplain,
  cancel: async () => (await import('./commands/cancel.ts')).addCancel,
  pause: async () => (await import('./commands/pause.ts')).addPause,
  resume: async () => (await import('./commands/pause.ts')).addResume,
  limits: async () => (await import('./commands/limits.ts')).addLimits,
  schedules: async () => (await import('./commands/schedules.ts')).addSchedules,
  dead: async () => (await import('./commands/dead.ts')).addDead,
  audit: async () => (await import('./commands/audit.ts')).addAudit,
  stats: async () => (await import('./commands/stats.ts')).addStats,
  top: async () => (await import('./commands/top.ts')).addTop,
  workers: async () => (await import('./commands/workers.ts')).addWorkers,
  health: async () => (await import('./commands/health.ts')).addHealth,
  migrate: async () => (await import('./commands/migrate.ts')).addMigrate,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctor,
  reap: async () => (await import('./commands/reap.ts')).addReap,
  clean: async () => (await import('./commands/clean.ts')).addClean,
}

/** It prints all of them, so all are loaded with it. */
const loadCompletion: LoadCommand = async () => (await import('./commands/completion.ts')).addCompletion

/**
 * What a command line needs: the command that it names, or all of them where it names none, so that help can list them
 * and a mistyped one be told from its neighbours.
 */
export async function loadCommands({ extensions }: Cli, named: string | null): Promise<readonly AddCommand[]> {
  const loaders = { ...COMMANDS, ...extensionsOf(extensions.commands) }
  const only = named !== null && Object.hasOwn(loaders, named) ? loaders[named] : undefined
  if (only !== undefined) return [await only()]
  return Promise.all([...Object.values(loaders), loadCompletion].map((load) => load()))
}

function extensionsOf(commands: Cli['extensions']['commands']): Readonly<Record<string, LoadCommand>> {
  const entries = Object.entries(commands).map(([name, load]): [string, LoadCommand] => [
    name,
    async () => {
      const [{ addExtension }, extension] = await Promise.all([import('./commands/extensions.ts'), load()])
      return (program, cli) => addExtension(program, cli, name, extension)
    },
  ])
  return Object.fromEntries(entries)
}

/** The first word that is neither an option of the program nor the value of one; null if there is none. */
export function commandIn(args: readonly string[], program: Command): string | null {
  const valued = program.options.filter(({ required }) => required).map(({ long }) => long)
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? ''
    if (!word.startsWith('-')) return word
    if (valued.includes(word)) index += 1
  }
  return null
}
