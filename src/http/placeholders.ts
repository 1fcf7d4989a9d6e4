import { isPlaceholder } from '../job/redaction.ts'
import { HttpError } from './problems.ts'

const PLACES_MAX = 20

interface Part {
  /** Such as `cards.0.number`; empty for the whole payload. */
  readonly place: string
  readonly value: unknown
}

/** The placeholder of a secret must not become its value. */
export function refusePlaceholder(payload: unknown): void {
  const found = placeholdersIn(payload)
  const [first] = found
  if (first === undefined) return
  const says = ({ value }: Part): string => `'${value}', and no stored value belongs there; type the value`
  const where = first.place === '' ? 'is' : `has at '${first.place}'`
  throw new HttpError(400, 'ERR_REQUEST_INVALID', `the payload ${where} ${says(first)}`, {
    issues: found.map((part) => ({
      path: ['body.payload', part.place].filter(Boolean).join('.'),
      message: `is ${says(part)}`,
    })),
  })
}

/** The first of them. */
function placeholdersIn(payload: unknown): readonly Part[] {
  const found: Part[] = []
  const left: Part[] = [{ place: '', value: payload }]
  for (let part = left.pop(); part !== undefined && found.length < PLACES_MAX; part = left.pop()) {
    const { place, value } = part
    if (isPlaceholder(value)) found.push(part)
    if (typeof value !== 'object' || value === null) continue
    for (const [name, inner] of Object.entries(value).reverse()) {
      left.push({ place: [place, name].filter((one) => one !== '').join('.'), value: inner })
    }
  }
  return found
}
