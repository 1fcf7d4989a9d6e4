import type { Retention } from '../../../engine/retention.ts'
import type { TypeStores } from './stores.ts'

/** One type after another, by name. Where a sweep goes on is the type and the place within it. */
export function createRetention(stores: TypeStores): Retention {
  return {
    async sweep(rules, step) {
      const types = await stores.types()
      const [, from = '', inner = ''] = /^([^\n]*)\n([\s\S]*)$/.exec(step.from ?? '') ?? []
      const at = types.findIndex((type) => type >= from)
      const type = types[at]
      if (type === undefined) return { removed: 0, next: null }
      const place = type === from && inner !== '' ? inner : null
      const { retention } = await stores.of(type)
      const { removed, next } = await retention.sweep(rules, { ...step, from: place })
      if (next !== null) return { removed, next: `${type}\n${next}` }
      const following = types[at + 1]
      return { removed, next: following === undefined ? null : `${following}\n` }
    },
    async usedBytes() {
      const sizes = await Promise.all((await stores.every()).map(({ retention }) => retention.usedBytes()))
      return sizes.reduce((sum, bytes) => sum + bytes, 0)
    },
    async compact() {
      await stores.shared.ping()
      return false
    },
  }
}
