import type { Engine, Receipt } from '../engine/engine.ts'
import { OptionError, UnsupportedError } from '../errors.ts'
import type { AnyJob, JobDefinition } from '../job/definition.ts'
import type { NewJob } from '../job/job.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { ENQUEUE_NAMES, type EnqueueOptions } from '../job/options.ts'
import { located, type Preparation, prepareJobs } from './prepare.ts'

type PayloadOf<Job> = Job extends JobDefinition<infer Input, infer _, infer __> ? Input : unknown
export type ResultOf<Job> = Job extends JobDefinition<infer _, infer __, infer Result> ? Result : unknown

/** The name of a step in the flow, or the receipt of a stored job. */
type Before<Name extends string> = Name | { readonly id: string }

/** One job of a flow, with any option of `enqueue`; its `after` names other steps. */
export type FlowStep<Job extends AnyJob | string, Name extends string> = Omit<EnqueueOptions, 'after'> & {
  readonly job: Job
  readonly after?: Before<Name> | readonly Before<Name>[]
} & (unknown extends PayloadOf<Job> ? { readonly payload?: unknown } : { readonly payload: PayloadOf<Job> })

/** The steps of a flow by name. */
export type Flow<Jobs extends Readonly<Record<string, AnyJob | string>>> = {
  readonly [Name in keyof Jobs]: FlowStep<Jobs[Name], keyof Jobs & string>
}

/** A step whose types no longer matter. */
type AnyStep = FlowStep<AnyJob | string, string>

/** A flow is stored whole, so an engine that might store half of it is refused. */
export function admitFlow({ name, capabilities }: Engine): void {
  if (!capabilities.dependencies)
    throw new UnsupportedError({ engine: name, limit: 'cannot make a job wait for others' })
  if (!capabilities.enqueueAtomic) {
    throw new UnsupportedError({ engine: name, limit: 'may store a part of a flow; enqueue its jobs one by one' })
  }
}

/** The jobs of a flow by step name, each behind those that it waits for. Nothing is stored yet. */
export async function prepareFlow(
  preparation: Preparation,
  steps: Readonly<Record<string, AnyStep>>,
  definitionOf: (job: AnyJob | string) => AnyJob,
): Promise<ReadonlyMap<string, NewJob>> {
  const jobs = new Map<string, NewJob>()
  for (const name of inOrder(steps)) {
    const step = steps[name]
    if (step === undefined) continue
    const { job, payload, after, ...options } = step
    refuseUnknown<EnqueueOptions>(options, ENQUEUE_NAMES, `step '${name}'`)
    const ids = listOf(after).map((one) => (typeof one === 'string' ? (jobs.get(one)?.id ?? one) : one))
    const prepared = await prepareJobs(preparation, definitionOf(job), [payload], {
      ...options,
      ...(after !== undefined && { after: ids }),
    }).catch((error: unknown) => Promise.reject(located(error, `step '${name}'`)))
    for (const one of prepared) jobs.set(name, one)
  }
  admitTypes(preparation.engine, [...jobs.values()])
  return jobs
}

function admitTypes({ name, capabilities }: Engine, jobs: readonly NewJob[]): void {
  const types = [...new Set(jobs.map(({ type }) => type))]
  if (capabilities.scope === 'store' || types.length < 2) return
  throw new UnsupportedError({
    engine: name,
    limit: `keeps each type by itself, and this flow has the types '${types.join("', '")}'; give a flow of one type, or let each handler enqueue the next job`,
  })
}

/** The names of the steps in topological order, otherwise as given. */
export function inOrder(steps: Readonly<Record<string, Pick<AnyStep, 'after'>>>): readonly string[] {
  const done = new Set<string>()
  const path: string[] = []
  const visit = (name: string, from: string): void => {
    if (done.has(name)) return
    const step = Object.hasOwn(steps, name) ? steps[name] : undefined
    if (step === undefined) {
      throw new OptionError(
        `step '${from}' comes after '${name}', which is not a step of this flow; for a stored job, pass its receipt`,
      )
    }
    if (path.includes(name)) {
      const cycle = [...path.slice(path.indexOf(name)), name].join("' after '")
      throw new OptionError(`the steps of this flow wait for each other: '${cycle}'; remove one 'after'`)
    }
    path.push(name)
    for (const before of listOf(step.after)) if (typeof before === 'string') visit(before, name)
    path.pop()
    done.add(name)
  }
  for (const name of Object.keys(steps)) visit(name, name)
  return [...done]
}

function listOf(after: AnyStep['after']): readonly Before<string>[] {
  if (after === undefined) return []
  return typeof after === 'string' || 'id' in after ? [after] : after
}

/** The receipts by step name, in the order given. */
export function receiptsByName<Steps extends object>(
  steps: Steps,
  names: readonly string[],
  receipts: readonly Receipt[],
): { readonly [Name in keyof Steps]: Receipt } {
  const byName = new Map(names.map((name, index) => [name, receipts[index]]))
  // Every step became one job with one receipt.
  return Object.fromEntries(Object.keys(steps).map((name) => [name, byName.get(name)])) as {
    readonly [Name in keyof Steps]: Receipt
  }
}
