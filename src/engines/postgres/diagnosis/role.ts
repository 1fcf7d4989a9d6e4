/** Whether this role may do what a worker does. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, ok } from '../../../engine/findings.ts'
import type { Database } from '../database.ts'
import { workerRights } from '../migrate.ts'
import { LOOK_AT_RIGHTS } from './statements.ts'

interface Rights {
  readonly role: string
  readonly super: boolean
  readonly usage: boolean
  readonly lacking: readonly { readonly name: string; readonly lacks: string }[]
}

export async function lookAtRole(database: Database): Promise<readonly Finding[]> {
  const needed = workerRights(database.names)
  const [found] = await database.rows<Rights>(
    LOOK_AT_RIGHTS,
    needed.flatMap(({ on }) => on),
    needed.flatMap(({ on, rights }) => on.map(() => rights)),
  )
  if (found === undefined) return []
  const lacking = [
    ...(found.usage ? [] : [`USAGE on schema ${database.names.schema}`]),
    ...new Set(found.lacking.map(({ name, lacks }) => `${lacks} on ${name}`)),
  ]
  if (lacking.length === 0) {
    return [ok('role', `'${found.role}' has every right of a worker${found.super ? ', and is a superuser' : ''}`)]
  }
  return [
    failure(
      'role',
      `'${found.role}' lacks ${lacking.join('; ')}`,
      `Run 'millrace migrate' as the owner of the tables with '?grant=${found.role}' in its URL.`,
    ),
  ]
}
