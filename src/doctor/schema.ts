/** Whether the tables are those that the migrations make. */
import type { Finding } from '../engine/engine.ts'
import { failure, ok, warning } from './findings.ts'

/** One difference between the schema that was found and the one that the migrations make. */
export type SchemaFault =
  /** `fix`: the SQL that adds it, or null where it cannot be added to a table with rows. */
  | { readonly kind: 'missing'; readonly part: string; readonly name: string; readonly fix: string | null }
  | {
      readonly kind: 'changed'
      readonly part: string
      readonly name: string
      readonly found: string
      readonly fix: string
    }
  | { readonly kind: 'retyped'; readonly name: string; readonly found: string; readonly expected: string }
  | { readonly kind: 'invalid'; readonly name: string; readonly fix: string }
  | { readonly kind: 'disabled'; readonly name: string; readonly fix: string }
  /** A column that is not Millrace's, not null and without a default. */
  | { readonly kind: 'required'; readonly name: string; readonly fix: string }
  | { readonly kind: 'duplicates'; readonly table: string; readonly columns: string; readonly fix: string }
  /** A statement that the database cannot parse fails at every call: that is what drift costs. */
  | { readonly kind: 'statement'; readonly name: string; readonly reason: string }

/** `parts`: how many tables, columns, indexes and triggers were compared. */
export function judgeSchema(faults: readonly SchemaFault[], parts: number): readonly Finding[] {
  if (faults.length === 0) return [ok('schema', `${parts} parts of the schema are as the migrations make them`)]
  return faults.map(judge)
}

const run = (sql: string): string => `Stop the workers, then as the owner run: ${sql}`

function judge(fault: SchemaFault): Finding {
  switch (fault.kind) {
    case 'missing':
      return failure(
        'schema',
        `the ${fault.part} ${fault.name} is missing`,
        fault.fix === null
          ? `It cannot be added to a table with rows: restore a backup, or move the rows into tables made by 'millrace migrate'.`
          : run(fault.fix),
      )
    case 'changed':
      return warning(
        'schema',
        `the ${fault.part} ${fault.name} is not the one that Millrace makes: ${fault.found}`,
        run(fault.fix),
      )
    case 'retyped':
      return warning(
        'schema',
        `the column ${fault.name} is '${fault.found}' where Millrace makes '${fault.expected}'`,
        `Copy the rows into tables made by 'millrace migrate', unless you made it so on purpose.`,
      )
    case 'invalid':
      return failure('schema', `the index ${fault.name} is invalid: building it failed`, run(fault.fix))
    case 'disabled':
      return failure('schema', `the trigger ${fault.name} is disabled`, run(fault.fix))
    case 'required':
      return failure(
        'schema',
        `the column ${fault.name} is not Millrace's and has no default: every new row is refused`,
        `Give it a default, allow null, or drop it: ${fault.fix}`,
      )
    case 'duplicates':
      return failure(
        'schema',
        `${fault.table} does not keep ${fault.columns} unique: the same job can be stored twice`,
        `Remove duplicates, then run: ${fault.fix}`,
      )
    case 'statement':
      return failure(
        'schema',
        `the statement ${fault.name} cannot run: ${fault.reason}`,
        `Fix what is missing or changed above, or run 'millrace migrate'.`,
      )
    default:
      return fault satisfies never
  }
}
