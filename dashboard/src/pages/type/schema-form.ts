/** A form from JSON Schema: which fields it has, what they say to begin with, and the payload that they make. */

export interface Field {
  /** The place in the payload, such as `address.street`. */
  readonly path: string
  readonly label: string
  readonly kind: 'text' | 'number' | 'boolean' | 'choice' | 'time' | 'list'
  readonly isRequired: boolean
  readonly hint?: string
  readonly choices: readonly string[]
  /** Of the items of a list. */
  readonly isNumeric: boolean
  /** What it says to begin with. */
  readonly initial: string
}

type Schema = Readonly<Record<string, unknown>>

const DEPTH_MAX = 4
const FIELDS_MAX = 40

/** Null for a schema that the form cannot express whole: then the payload is written as JSON. */
export function fieldsOf(schema: unknown): readonly Field[] | null {
  const fields = objectFields(recordOf(schema), { path: '', isRequired: true, depth: 0 })
  return fields === null || fields.length === 0 || fields.length > FIELDS_MAX ? null : fields
}

interface Place {
  readonly path: string
  readonly isRequired: boolean
  readonly depth: number
}

function objectFields(schema: Schema, { path, isRequired, depth }: Place): readonly Field[] | null {
  if (schema.type !== 'object' || depth > DEPTH_MAX || isOpen(schema)) return null
  const required = Array.isArray(schema.required) ? schema.required : []
  const fields: Field[] = []
  for (const [name, part] of Object.entries(recordOf(schema.properties))) {
    const place = {
      path: path === '' ? name : `${path}.${name}`,
      isRequired: isRequired && required.includes(name),
      depth: depth + 1,
    }
    // A dot would be taken for a step into an object.
    const made = name.includes('.') ? null : partFields(recordOf(part), place)
    if (made === null) return null
    fields.push(...made)
  }
  return fields
}

/** Names that the schema does not list need a field of another kind. */
function isOpen({ additionalProperties, patternProperties }: Schema): boolean {
  return (typeof additionalProperties === 'object' && additionalProperties !== null) || patternProperties !== undefined
}

function partFields(schema: Schema, place: Place): readonly Field[] | null {
  if (schema.type === 'object') return objectFields(schema, place)
  const kind = kindOf(schema)
  if (kind === null) return null
  const { path, isRequired } = place
  const choices = Array.isArray(schema.enum) ? schema.enum.map(String) : []
  const hint = typeof schema.description === 'string' ? { hint: schema.description } : {}
  const label = typeof schema.title === 'string' ? schema.title : path
  const isNumeric = isNumber(recordOf(schema.items).type)
  return [{ ...{ path, label, kind, isRequired, choices, isNumeric }, ...hint, initial: initialOf(schema, kind) }]
}

function kindOf(schema: Schema): Field['kind'] | null {
  const { type, format } = schema
  if (Array.isArray(schema.enum)) return schema.enum.every((choice) => typeof choice === 'string') ? 'choice' : null
  if (type === 'string') return format === 'date-time' ? 'time' : 'text'
  if (type === 'boolean') return 'boolean'
  if (isNumber(type)) return 'number'
  const items = recordOf(schema.items)
  const isPlain = items.enum === undefined && (items.type === 'string' || isNumber(items.type))
  return type === 'array' && isPlain ? 'list' : null
}

function isNumber(type: unknown): boolean {
  return type === 'number' || type === 'integer'
}

function initialOf(schema: Schema, kind: Field['kind']): string {
  const value = schema.default
  if (kind === 'boolean') return value === true ? 'true' : ''
  if (kind === 'list') return Array.isArray(value) ? value.map(String).join('\n') : ''
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** What is empty and not required is left out; what is empty and required is left to the server to refuse. */
export function payloadOf(fields: readonly Field[], values: ReadonlyMap<string, string>): unknown {
  const payload: Record<string, unknown> = {}
  for (const field of fields) {
    const value = partOf(field, values.get(field.path) ?? field.initial)
    if (value !== undefined) put(payload, field.path.split('.'), value)
  }
  return payload
}

function partOf({ kind, isRequired, isNumeric }: Field, text: string): unknown {
  if (kind === 'boolean') return isRequired || text === 'true' ? text === 'true' : undefined
  if (kind === 'list') {
    const items = text.split('\n').filter((item) => item !== '')
    if (items.length === 0 && !isRequired) return undefined
    return isNumeric ? items.map(Number) : items
  }
  if (text === '' && (!isRequired || kind !== 'text')) return undefined
  if (kind === 'number') return Number(text)
  return kind === 'time' ? new Date(text).toISOString() : text
}

function put(into: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    into[name] = value
    return
  }
  const inner = { ...recordOf(into[name]) }
  put(inner, rest, value)
  into[name] = inner
}

function recordOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
