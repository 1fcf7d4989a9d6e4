/** The job types of the workload: each with settings of its own, as far as the engine can keep them. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { defineJob, type HandledJob, type JobDefinition } from '../../src/job/definition.ts'
import type { Concurrency } from '../../src/job/slots.ts'
import type { WorkerOptions } from '../../src/worker/options.ts'
import { type Abilities, has, ranks } from './abilities.ts'
import type { Behaviour } from './operation.ts'

/** What the handlers of both versions are given. */
export interface Plan {
  readonly n: number | string
  readonly behaviours: readonly Behaviour[]
}

/** A payload as version 1 stores it. Version 2 has `steps` in place of `behaviours`. */
export type Payload =
  | (Plan & { readonly extra?: string })
  | { readonly n: number | string; readonly steps: readonly Behaviour[]; readonly extra?: string }

export type PlanDefinition = JobDefinition<Payload, Plan>
export type PlanHandler = HandledJob<Payload, Plan>

/** Both versions run at once: workers of version 1 meet payloads of version 2 of the type `versioned` and leave them. */
export type Version = 1 | 2

export const TYPES = [
  'plain',
  'narrow',
  'tenanted',
  'limited',
  'urgent',
  'bounded',
  'fleeting',
  'aged',
  'critical',
  'versioned',
  'scheduled',
  'foreign',
] as const
type WorkType = (typeof TYPES)[number]

type Settings = Omit<Parameters<typeof defineJob>[0], 'type' | 'payload' | 'run' | 'hooks' | 'byName' | 'schedule'>

/** Failures come back soon, so that a round is short. */
const SOON = { kind: 'fixed', delay: 40 } as const

function settingsOf(type: WorkType, abilities: Abilities): Settings {
  const { capabilities } = abilities
  const usual: Settings = { lease: 1_500, attempts: 3, backoff: SOON, timeout: 30_000 }
  const whereRemoved = (settings: Settings): Settings => (has(abilities, 'retention') ? settings : {})
  const whereCounted = (concurrency: Concurrency): Settings => (capabilities.slots === 'shared' ? { concurrency } : {})
  switch (type) {
    case 'plain':
    case 'scheduled':
    case 'foreign':
      return usual
    case 'narrow':
      return { ...usual, concurrency: 2, lease: 1_000, backoff: { kind: 'list', delays: [20, 60], jitter: 'full' } }
    case 'tenanted':
      return { ...usual, lease: 1_000, ...whereCounted({ max: 2, by: 'tenant' }) }
    case 'limited':
      return { ...usual, ...(capabilities.limits === 'shared' && { limit: { max: 8, per: 250 } }) }
    case 'urgent':
      return {
        ...usual,
        ...(ranks(abilities) && { priority: 2 }),
        backoff: { kind: 'exponential', base: 20, max: 200, jitter: 'equal' },
      }
    case 'bounded':
      return { ...usual, ...whereRemoved({ removeOnComplete: 5, removeOnFail: 3 }) }
    case 'fleeting':
      return { ...usual, ...whereRemoved({ removeOnComplete: true, removeOnFail: true }) }
    case 'aged':
      return {
        ...usual,
        lease: 2_000,
        ...whereRemoved({ retention: { completed: '2s', ended: '2s', dead: '4s' } }),
      }
    case 'critical':
      return {
        ...{ ...usual, critical: true, attempts: 2, ...whereCounted({ max: 4 }) },
        backoff: { kind: 'fixed', delay: 30, jitter: { add: 30 } },
      }
    case 'versioned':
      return usual
    default:
      return type satisfies never
  }
}

/**
 * The definitions of all types, without handlers: for clients and the desk. `handlersFor` adds the handlers.
 *
 * @example
 * const definitions = definitionsFor(abilitiesOf(mill.engine), 2)
 */
export function definitionsFor(abilities: Abilities, version: Version): ReadonlyMap<string, PlanDefinition> {
  return new Map(TYPES.map((type) => [type, definitionOf(type, abilities, version)]))
}

function definitionOf(type: WorkType, abilities: Abilities, version: Version): PlanDefinition {
  const settings = settingsOf(type, abilities)
  if (type !== 'versioned' || version === 1) return defineJob({ ...settings, type, payload: plans })
  return defineJob({ ...settings, type, payload: plans, version, upcast: toSteps })
}

/** From `behaviours` to `steps`. */
function toSteps(payload: unknown): unknown {
  if (typeof payload !== 'object' || payload === null) return payload
  const { behaviours, ...rest } = { behaviours: null, ...payload }
  return { ...rest, steps: behaviours }
}

/** A schema by hand: this package has none as a dependency. */
const plans: StandardSchemaV1<Payload, Plan> = {
  '~standard': {
    version: 1,
    vendor: 'millrace',
    validate: (value) => {
      const plan = planOf(value)
      return plan === null ? { issues: [{ message: `a plan has 'n' and 'behaviours' or 'steps'` }] } : { value: plan }
    },
  },
}

function planOf(value: unknown): Plan | null {
  if (typeof value !== 'object' || value === null) return null
  const n: unknown = Reflect.get(value, 'n')
  const behaviours: unknown = Reflect.get(value, 'behaviours') ?? Reflect.get(value, 'steps')
  if ((typeof n !== 'number' && typeof n !== 'string') || !Array.isArray(behaviours)) return null
  return { n, behaviours }
}

/**
 * How a worker of the workload is started. Every third one ages, where the engine can; leases are short, so those of dead
 * workers are looked for often.
 */
export function workerOptionsFor(
  { capabilities }: Abilities,
  index: number,
): WorkerOptions & { readonly concurrency: number } {
  return {
    concurrency: [12, 8, 4][index % 3] ?? 8,
    poll: 250,
    drain: 2_000,
    ...(capabilities.recovery === 'reaper' && { reap: 500 }),
    ...(capabilities.order === 'ageing-priority' && index % 3 === 2 && { ageing: 200 }),
  }
}
