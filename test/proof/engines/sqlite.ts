import { join } from 'node:path'
import { capabilitiesOf } from '../../../src/engine/open.ts'
import type { OpenStore } from '../scene.ts'

/** A new file for each round, in the folder of the round, which removes it. */
export const openSqlite: OpenStore = async ({ folder }) => {
  const url = `sqlite:${join(folder, 'store.db')}`
  return {
    engine: 'sqlite',
    capabilities: await capabilitiesOf(url),
    url,
    directUrl: url,
    wire: null,
    nemeses: [],
    producers: [],
    destroy: async () => {},
  }
}
