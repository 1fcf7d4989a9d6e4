/** What is given on a command line as text: payloads, times and tenants. */
import { OptionError, PayloadError } from '../errors.ts'
import type { Tenant } from '../job/job.ts'
import { fromIso } from '../time/iso.ts'

export function parsePayload(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new PayloadError(
      'ERR_PAYLOAD_NOT_JSON',
      `the payload is not JSON; quote it for your shell, such as '{"name":"Ada"}', or pass - and pipe it in`,
      { cause: error },
    )
  }
}

/** With a zone only: the store may be read on a machine in another one. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/

export function parseTime(text: string, name: string): Date {
  const ms = TIME.test(text) ? fromIso(text) : Number.NaN
  if (Number.isFinite(ms)) return new Date(ms)
  throw new OptionError(`'${name}' is '${text}'; give a time with its zone, such as 2030-01-31T09:00:00Z`)
}

export function parseTenant(tenant: string): Tenant {
  const [orgId = '', workspaceId, ...rest] = tenant.split('/')
  if (orgId === '' || workspaceId === '' || rest.length > 0) {
    throw new OptionError(`'tenant' is '${tenant}'; give org or org/workspace`)
  }
  return { orgId, ...(workspaceId !== undefined && { workspaceId }) }
}
