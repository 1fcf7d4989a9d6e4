import type { DefinitionFacts } from '../job/definition-facts.ts'
import { bodyFields, type Records } from './records.ts'

/** Definitions of types that no worker has published for this long are forgotten. */
const KEPT_MS = 30 * 86_400_000

/** Who publishes does so again after this, however long it runs. */
export const PUBLISH_EVERY_MS = 86_400_000

/** The last worker that starts with a type says what its definition is. */
export async function publishDefinitions(records: Records, definitions: readonly DefinitionFacts[]): Promise<void> {
  const bodies = definitions.map((facts) => ({ name: facts.type, body: JSON.stringify(facts) }))
  await records.put('definition', bodies, KEPT_MS)
}

/** Null for a type that no worker has published, or of which a later version of this package says something else. */
export async function publishedDefinition(records: Records, type: string): Promise<DefinitionFacts | null> {
  const record = (await records.list('definition')).find(({ name }) => name === type)
  if (record === undefined || (record.leftMs ?? 0) <= 0) return null
  const fields = bodyFields(record.body)
  return isFacts(fields) ? fields : null
}

const NUMBERS = ['version', 'attempts', 'timeoutMs', 'leaseMs', 'priority']
const OBJECTS = ['backoff', 'retention', 'names']

/** Written by `publishDefinitions` of this version, or of one that has the same fields. */
function isFacts(fields: object): fields is DefinitionFacts {
  const of = (name: string): unknown => Reflect.get(fields, name)
  return (
    typeof of('type') === 'string' &&
    typeof of('critical') === 'boolean' &&
    NUMBERS.every((name) => typeof of(name) === 'number') &&
    OBJECTS.every((name) => typeof of(name) === 'object' && of(name) !== null)
  )
}
