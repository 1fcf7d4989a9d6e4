import { NonRetryable, OptionError } from '../../src/errors.ts'
import { type AnyHandledJob, defineJob, type HandledJob } from '../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { type Limiter, toLimit } from './options.ts'

export interface QueueOptions {
  /** Jobs of the queue that run at once in one process. Null: as many as the worker's own concurrency. */
  readonly concurrency?: number | null
  /** Starts over all workers of the queue, whatever their names. Null: without a limit. */
  readonly limiter?: Limiter | null
}

const NAMES: OptionNames<QueueOptions> = { concurrency: true, limiter: true }

/**
 * One queue for workers of many types, as BullMQ's programs fill it: `new Queue('ruvbot').add('webhook-dispatch', data)`. Each
 * job goes to the worker whose type is its name, with that worker's data check, timeout, backoff, hooks and counters. A name
 * without a worker is a dead letter.
 *
 * Concurrency and limiters hold for the whole queue. If a worker has one of its own, say here what holds instead.
 *
 * @example
 * const ruvbot = queueOf('ruvbot', [new Webhooks(), new Embeddings()], { concurrency: 20, limiter: null })
 * await mill.work([ruvbot])
 * await mill.enqueue(ruvbot, data, { name: 'webhook-dispatch' })
 */
export function queueOf(
  type: string,
  workers: readonly (AnyHandledJob | { readonly definition: AnyHandledJob })[],
  options: QueueOptions = {},
): HandledJob {
  refuseUnknown(options, NAMES, 'queueOf')
  const jobs = workers.map((worker) => ('definition' in worker ? worker.definition : worker))
  const { concurrency, limiter } = options
  for (const job of jobs) {
    if (job.concurrency !== null && concurrency === undefined) throw holdsForAll(type, job.type, 'concurrency')
    if (job.limit !== null && limiter === undefined) throw holdsForAll(type, job.type, 'limiter')
  }
  const names = jobs.map((job) => job.type)
  return defineJob({
    type,
    ...(concurrency != null && { concurrency }),
    ...(limiter != null && { limit: toLimit(limiter) }),
    byName: jobs.map((job) => Object.freeze({ ...job, concurrency: null, limit: null })),
    run: ({ job }): unknown => {
      const known = names.length === 0 ? 'it has no workers' : `it has workers for ${names.join(', ')}`
      throw new NonRetryable(`no worker of the queue '${type}' is for jobs named '${job.name}'; ${known}`)
    },
  })
}

function holdsForAll(type: string, name: string, option: keyof QueueOptions): OptionError {
  return new OptionError(
    `'${name}' has a '${option}' of its own, which a queue cannot keep for one name; give '${type}' one for all its jobs, or null`,
  )
}
