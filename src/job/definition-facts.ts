import type { Backoff } from './backoff.ts'
import type { AnyJob } from './definition.ts'
import type { AgesMs } from './keep.ts'
import { jsonSchemaOf } from './redaction.ts'
import type { SharedSlots } from './slots.ts'
import type { JsonRecord } from './stored-json.ts'

/** What a definition says, without its code: workers publish it, so that a process without the code can show it. */
export interface DefinitionFacts {
  readonly type: string
  readonly version: number
  readonly attempts: number
  readonly backoff: Backoff
  readonly timeoutMs: number
  readonly leaseMs: number
  readonly priority: number
  /** In one worker; `slots`: over all workers. */
  readonly concurrency: number | null
  readonly slots: SharedSlots | null
  readonly limit: { readonly max: number; readonly perMs: number } | null
  readonly critical: boolean
  readonly keepCompleted: number | null
  readonly keepDead: number | null
  readonly retention: AgesMs
  /** Names of jobs within the type that have definitions of their own. */
  readonly names: readonly string[]
  /** JSON Schema of the payload as it is enqueued; null for the reason that `schemaLacks` gives. */
  readonly schema: JsonRecord | null
  /** `none`: it has no schema. `unreadable`: its library does not say what it is. `large`: longer than is kept. */
  readonly schemaLacks: 'none' | 'unreadable' | 'large' | null
}

/** A schema with more text is not kept: it would be read with every look at the type. */
const SCHEMA_TEXT_MAX = 32_768

export function definitionFacts(job: AnyJob): DefinitionFacts {
  const { type, version, attempts, backoff, timeoutMs, leaseMs, priority, concurrency, slots, limit } = job
  const { critical, keepCompleted, keepDead, retention, byName } = job
  return {
    ...{ type, version, attempts, backoff, timeoutMs, leaseMs, priority, concurrency, slots, limit },
    ...{ critical, keepCompleted, keepDead, retention },
    names: [...(byName?.keys() ?? [])],
    ...schemaFacts(job),
  }
}

function schemaFacts(job: AnyJob): Pick<DefinitionFacts, 'schema' | 'schemaLacks'> {
  if (job.schema === null) return { schema: null, schemaLacks: 'none' }
  const schema = jsonSchemaOf(job)
  if (schema === null || schema === 'unreadable') return { schema: null, schemaLacks: 'unreadable' }
  if (JSON.stringify(schema).length > SCHEMA_TEXT_MAX) return { schema: null, schemaLacks: 'large' }
  return { schema, schemaLacks: null }
}
