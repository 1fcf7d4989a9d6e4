import { OptionError } from '../../src/errors.ts'
import { type AnyJob, defineJob } from '../../src/job/definition.ts'
import { specOf } from './defaults.ts'
import { checkJobType, type JobType } from './job-types.ts'

/** A type that has a worker somewhere, as its name, definition or worker; or a queue of `queueOf`, for all its names. */
export type Handled = JobType | AnyJob | { readonly definition: AnyJob }

/** Where the jobs of a type go. */
export interface Target {
  readonly definition: AnyJob
  /** Of the type within a queue of many names. */
  readonly name?: string
}

export function targetsOf(handled: readonly Handled[]): ReadonlyMap<string, Target> {
  const targets = handled.flatMap(targetsIn)
  const byType = new Map(targets)
  if (byType.size === targets.length) return byType
  throw new OptionError(`a type is named twice among the handled ones; name each once`)
}

/** For a type that nothing else says more about. */
export function targetOf(type: JobType): Target {
  return { definition: defineJob(specOf(checkJobType(type))) }
}

function targetsIn(handled: Handled): readonly (readonly [type: string, Target])[] {
  if (typeof handled === 'string') return [[handled, targetOf(handled)]]
  const definition = 'definition' in handled ? handled.definition : handled
  if (definition.byName === null) return [[checkJobType(definition.type), { definition }]]
  return [...definition.byName.keys()].map((name) => [name, { definition, name }])
}
