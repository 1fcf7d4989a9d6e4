import { OptionError } from '../errors.ts'
import type { AnyJob } from './definition.ts'

/** The definition of one job: that of its name if its type has one, otherwise that of its type. */
export function definitionFor(definition: AnyJob, name: string | undefined): AnyJob {
  if (definition.byName === null || name === undefined) return definition
  return definition.byName.get(name) ?? definition
}

/** Refuses what a queue cannot keep for one name: claims, and so their limits, count the jobs of the whole queue. */
export function checkByName(type: string, jobs: readonly AnyJob[] | undefined): ReadonlyMap<string, AnyJob> | null {
  if (jobs === undefined) return null
  if (!Array.isArray(jobs))
    throw new OptionError(`'byName' of '${type}' is not an array; give the definitions of the names`)
  const byName = new Map<string, AnyJob>()
  for (const job of jobs) {
    if (byName.has(job.type))
      throw new OptionError(`'byName' of '${type}' has two definitions of '${job.type}'; keep one`)
    const whole = { ...job, concurrency: job.concurrency ?? job.slots }
    for (const option of ['concurrency', 'limit', 'schedule', 'byName'] as const) {
      if (whole[option] === null) continue
      throw new OptionError(`'${option}' of '${job.type}' cannot hold for one name of '${type}'; give it to '${type}'`)
    }
    if (Object.keys(job.retention).length > 0) {
      throw new OptionError(`'retention' of '${job.type}' cannot hold for one name of '${type}'; give it to '${type}'`)
    }
    byName.set(job.type, job)
  }
  return byName
}
