import { capabilitiesOf } from '../../../src/engine/open.ts'
import type { OpenStore } from '../scene.ts'

/** The jobs are in the memory of one process, which has all roles; what that process loses is the round's own business. */
export const openMemory: OpenStore = async () => ({
  engine: 'memory',
  capabilities: await capabilitiesOf('memory:'),
  url: 'memory:',
  directUrl: 'memory:',
  wire: null,
  nemeses: [],
  producers: [],
  destroy: async () => {},
})
