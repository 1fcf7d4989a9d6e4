import { parseRoute } from './route.ts'
import { replaceRoute } from './use-route.ts'

/** The value of a read-only link in the address, which it is removed from: nobody should copy or bookmark it there. */
export function takeLink(): string | null {
  const { page, query } = parseRoute(location.hash)
  if (page !== 'overview' || query.link === undefined) return null
  replaceRoute('#/')
  return query.link
}
