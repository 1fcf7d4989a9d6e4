import { admitDefinition, admitJob } from '../engine/capability-checks.ts'
import type { Engine } from '../engine/engine.ts'
import { OptionError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import type { NewJob, Tenant } from '../job/job.ts'
import { newJobId } from '../job/job.ts'
import { checkKeepDead } from '../job/keep.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { definitionFor } from '../job/named-jobs.ts'
import {
  checkAttempts,
  checkDue,
  checkKey,
  checkPriority,
  checkTenant,
  type EnqueueOptions,
  storedOptions,
} from '../job/options.ts'
import { encodePayload, encodeUnvalidated } from '../job/payload.ts'
import { checkAfter } from '../job/predecessors.ts'

export interface Preparation {
  readonly engine: Engine
  readonly nowMs: number
  readonly payloadBytesMax: number
}

/** Refuses everything that can be refused before the engine is called, so that bad input changes nothing. */
export async function prepareJobs(
  preparation: Preparation,
  queue: AnyJob,
  payloads: readonly unknown[],
  options: EnqueueOptions,
): Promise<readonly NewJob[]> {
  const { engine, nowMs, payloadBytesMax } = preparation
  const definition = definitionFor(queue, options.name)
  const shared = { ...resolve(definition, options, nowMs), type: queue.type }
  admit(engine, definition, options)
  const hasSchema = definition.schema !== null
  const jobs: NewJob[] = []
  for (const [index, payload] of payloads.entries()) {
    try {
      const text = hasSchema
        ? await encodePayload(definition, payload, payloadBytesMax)
        : encodeUnvalidated(definition, payload, payloadBytesMax)
      const job = { ...shared, id: newJobId(nowMs), payload: text }
      admitJob(engine, job, nowMs)
      jobs.push(job)
    } catch (error) {
      throw payloads.length === 1 ? error : located(error, `payloads[${index}]`)
    }
  }
  return jobs
}

/** What each engine takes as it is defined: neither definitions nor capabilities change, so each is looked at once. */
const admitted = new WeakMap<Engine, WeakSet<AnyJob>>()

function admit(engine: Engine, definition: AnyJob, { backoff, attempts }: EnqueueOptions): void {
  if (backoff !== undefined || attempts !== undefined) {
    const asked = { backoff: backoff ?? definition.backoff, attempts: attempts ?? definition.attempts }
    admitDefinition(engine, { ...definition, ...asked })
    return
  }
  const known = admitted.get(engine) ?? new WeakSet()
  if (known.has(definition)) return
  admitDefinition(engine, definition)
  admitted.set(engine, known.add(definition))
}

/** Prefixes the error's message with the place of the bad item, which could not be found otherwise in a batch. */
export function located(error: unknown, place: string): unknown {
  if (!(error instanceof Error)) return error
  const message = `${place}: ${error.message}`
  // Logs print the stack, which contains the old message.
  if (error.stack !== undefined) error.stack = error.stack.replace(error.message, () => message)
  error.message = message
  return error
}

function resolve(definition: AnyJob, options: EnqueueOptions, nowMs: number): Omit<NewJob, 'id' | 'payload'> {
  if (options.key !== undefined && options.latest !== undefined) {
    throw new OptionError(
      `'key' and 'latest' contradict each other: one keeps the first job, the other the last; give one`,
    )
  }
  if (options.removeOnFail !== undefined) checkKeepDead(options.removeOnFail, definition)
  return {
    type: definition.type,
    payloadVersion: definition.version,
    priority: checkPriority(options.priority ?? definition.priority),
    attempts: checkAttempts(options.attempts ?? definition.attempts),
    ...checkDue(options, nowMs),
    key: options.key === undefined ? null : checkKey(options.key, 'key'),
    latest: resolveLatest(options.latest),
    tenant: options.tenant === undefined ? null : tenantOf(options.tenant),
    options: storedOptions(definition.tags.length === 0 ? options : { tags: definition.tags, ...options }),
    after: checkAfter(options),
  }
}

function tenantOf(tenant: Tenant): Tenant {
  const checked = checkTenant(tenant)
  refuseUnknown(tenant, { orgId: true, workspaceId: true }, `'tenant'`)
  return checked
}

function resolveLatest(latest: EnqueueOptions['latest']): NewJob['latest'] {
  if (latest === undefined) return null
  if (typeof latest === 'string') return { key: checkKey(latest, 'latest'), seq: null }
  refuseUnknown(latest, { key: true, seq: true }, `'latest'`)
  if (!Number.isSafeInteger(latest.seq) || latest.seq < 1) {
    throw new OptionError(`'latest.seq' is ${latest.seq}; give a whole number from 1, growing with every version`)
  }
  return { key: checkKey(latest.key, 'latest'), seq: latest.seq }
}
