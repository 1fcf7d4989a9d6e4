/** Job modules named on the command line: files whose exports are `defineJob` values, run by Node itself. */
import { stat } from 'node:fs/promises'
import { parse, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError, UnknownTypeError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'

interface Exported {
  readonly job: AnyJob
  readonly path: string
}

/** All definitions that the modules export: named, default or in arrays; each type once. */
export async function loadJobs(paths: readonly string[]): Promise<readonly AnyJob[]> {
  const byType = new Map<string, Exported>()
  for (const path of paths) {
    for (const job of await jobsOf(path)) {
      byType.set(job.type, oneOf(byType.get(job.type), { job, path }))
    }
  }
  return [...byType.values()].map(({ job }) => job)
}

/** The jobs that a worker can run. Throws for a type without a handler. */
export async function loadHandledJobs(
  paths: readonly string[],
  types: readonly string[] | null,
): Promise<readonly AnyJob[]> {
  const jobs = await loadJobs(paths)
  const known = jobs.map((job) => job.type)
  const unknown = types?.find((type) => !known.includes(type))
  if (unknown !== undefined) throw new UnknownTypeError(unknown, known)
  const chosen = types === null ? jobs : jobs.filter((job) => types.includes(job.type))
  const bare = chosen.filter((job) => job.run === null).map((job) => `'${job.type}'`)
  if (bare.length === 0) return chosen
  throw new MillraceError(
    'ERR_HANDLER_MISSING',
    `no handler for ${bare.join(', ')}; define it with 'run', export its 'handledBy(run)', or leave it out with --types`,
  )
}

/** A definition and its `handledBy` twin may both be exported: the one with a handler is used. Two handlers are an error. */
function oneOf(first: Exported | undefined, second: Exported): Exported {
  if (first === undefined) return second
  if (first.job === second.job || second.job.run === null) return first
  if (first.job.run === null) return second
  const places = first.path === second.path ? first.path : `${first.path} and ${second.path}`
  throw new MillraceError(
    'ERR_JOB_DUPLICATE',
    `two jobs of type '${first.job.type}' are exported by ${places}; give each its own type`,
  )
}

async function jobsOf(path: string): Promise<readonly AnyJob[]> {
  const exported = Object.values(await importModule(path))
  const jobs = exported.flat().filter(isJob)
  if (jobs.length > 0) return jobs
  throw new MillraceError(
    'ERR_MODULE_INVALID',
    `'${path}' exports no jobs; export what defineJob returns, by name, as default or in an array`,
  )
}

async function importModule(path: string): Promise<object> {
  const file = resolve(path)
  const found = await stat(file).catch(() => null)
  if (found === null) {
    throw new MillraceError('ERR_MODULE_MISSING', `there is no file '${path}'; name the module that exports your jobs`)
  }
  if (!found.isFile()) {
    throw new MillraceError(
      'ERR_MODULE_INVALID',
      `'${path}' is not a file; name a module in it, such as ${path}/jobs.ts`,
    )
  }
  try {
    const module: unknown = await import(pathToFileURL(file).href)
    return typeof module === 'object' && module !== null ? module : {}
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    throw new MillraceError('ERR_MODULE_INVALID', `'${path}' could not be loaded: ${reason}${adviceFor(error, path)}`, {
      cause: error,
    })
  }
}

/** `npm init` writes "type": "commonjs", under which Node reads `import` as a mistake. */
function adviceFor(error: unknown, path: string): string {
  const isImport = error instanceof SyntaxError && error.message.includes('outside a module')
  if (!isImport) return ''
  const { name, ext } = parse(path)
  return `; set "type": "module" in its package.json (npm pkg set type=module), or name it ${name}.m${ext.slice(1)}`
}

/** By shape, not by class: the module may have loaded its own copy of Millrace. */
function isJob(value: unknown): value is AnyJob {
  if (typeof value !== 'object' || value === null) return false
  const { type, run, handledBy, leaseMs, attempts } = value as Partial<Record<keyof AnyJob, unknown>>
  const handlerFits = run === null || typeof run === 'function'
  const numbersFit = typeof leaseMs === 'number' && typeof attempts === 'number'
  return typeof type === 'string' && typeof handledBy === 'function' && handlerFits && numbersFit
}
