import { omitUndefined } from '../../job/known-options.ts'
import type { AdminContext } from '../context.ts'
import type { TYPE_ROUTES } from '../contract/types.ts'
import type { Handlers } from '../routing.ts'

type TypeRoutes = Handlers<keyof typeof TYPE_ROUTES>

export function typeHandlers(admin: AdminContext): TypeRoutes {
  const { limits } = admin.mill
  return {
    listLimits: async () => ({ limits: await limits.list() }),
    async setLimits({ params: { type }, body: { concurrency, limit, reason } }, { caller }) {
      const rate = limit === null || limit === undefined ? limit : { max: limit.max, per: limit.perMs }
      const spec = omitUndefined({ concurrency, limit: rate })
      return { type, ...(await limits.set(type, spec, omitUndefined({ who: caller.who, reason }))) }
    },
    async resetLimits({ params: { type }, body: { reason } }, { caller }) {
      return { type, changed: await limits.reset(type, omitUndefined({ who: caller.who, reason })) }
    },
  }
}
