import type { Enqueued, Mill } from '../../src/client/mill.ts'
import { MillraceError, OptionError, PayloadError } from '../../src/errors.ts'
import type { Tenant } from '../../src/job/job.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { checkTenant } from '../../src/job/options.ts'
import { type Handled, type Target, targetsOf } from './handled.ts'
import { checkJobType } from './job-types.ts'
import { type JobConfig, type JobOptions, toEnqueueOptions } from './options.ts'

const CONFIG_NAMES: OptionNames<JobConfig> = { type: true, data: true, options: true, tenant: true }

/**
 * Enqueues jobs in the framework's form and returns a receipt once the job is stored. It never runs a job.
 *
 * It refuses types that are not handled anywhere, because such a job would silently wait for ever.
 *
 * @example
 * const dispatcher = new JobDispatcher(mill, ['webhook-dispatch'])
 * await dispatcher.dispatch({ type: 'webhook-dispatch', data: { webhookId: '7' }, options: { attempts: 5 } })
 */
export class JobDispatcher {
  readonly #mill: Mill
  readonly #handled: ReadonlyMap<string, Target>

  constructor(mill: Mill, handled: readonly Handled[]) {
    this.#mill = mill
    this.#handled = targetsOf(handled)
  }

  async dispatch<Data>(config: JobConfig<Data>): Promise<Enqueued<unknown>> {
    refuseUnknown(config, CONFIG_NAMES, 'a job')
    const { definition, name } = this.#target(config.type)
    if (config.data === undefined) {
      throw new PayloadError('ERR_PAYLOAD_NOT_JSON', `the job '${config.type}' has no 'data'; give an object`)
    }
    const { data, tenant } = withTenant(config.data, config.tenant)
    return this.#mill.enqueue(definition, data, enqueueOptions(config.options, tenant, name))
  }

  /** One job for each entry of `data`, stored in one call, all with the same options and tenant. */
  async dispatchMany<Data>(config: JobConfig<readonly Data[]>): Promise<readonly Enqueued<unknown>[]> {
    refuseUnknown(config, CONFIG_NAMES, 'a job')
    const { definition, name } = this.#target(config.type)
    if (!Array.isArray(config.data)) throw new OptionError(`'data' is not an array; give one entry for each job`)
    const moved = config.data.map((data) => withTenant(data, config.tenant))
    const [first] = moved
    if (first === undefined) return []
    if (moved.some(({ tenant }) => !isSameTenant(tenant, first.tenant))) {
      throw new OptionError('these jobs have different tenants; dispatch those of each tenant by themselves')
    }
    const payloads = moved.map(({ data }) => data)
    return this.#mill.enqueueMany(definition, payloads, enqueueOptions(config.options, first.tenant, name))
  }

  #target(type: unknown): Target {
    const listed = checkJobType(type)
    const target = this.#handled.get(listed)
    if (target !== undefined) return target
    throw new MillraceError(
      'ERR_HANDLER_MISSING',
      `no worker is known for '${listed}', so the job would wait for ever; start one and name the type in the JobDispatcher`,
    )
  }
}

function enqueueOptions(options: JobOptions = {}, tenant: Tenant | null, name: string | undefined) {
  return { ...toEnqueueOptions(options), ...(tenant !== null && { tenant }), ...(name !== undefined && { name }) }
}

/**
 * The tenant belongs beside the data, where workers, alerts and dead letters look for it. Older producers put it into the
 * data as `tenantContext`; it is moved from there.
 */
function withTenant(
  data: unknown,
  given: Tenant | undefined,
): { readonly data: unknown; readonly tenant: Tenant | null } {
  const tenant = given === undefined ? null : checkTenant(given)
  if (typeof data !== 'object' || data === null || !('tenantContext' in data)) return { data, tenant }
  const { tenantContext, ...rest } = data
  if (tenantContext === undefined || tenantContext === null) return { data: rest, tenant }
  const inside = checkTenant(tenantContext as Tenant)
  if (tenant === null || isSameTenant(tenant, inside)) return { data: rest, tenant: inside }
  throw new OptionError(`'tenant' and 'data.tenantContext' name different tenants; give one of them`)
}

function isSameTenant(one: Tenant | null, other: Tenant | null): boolean {
  return one?.orgId === other?.orgId && one?.workspaceId === other?.workspaceId
}
