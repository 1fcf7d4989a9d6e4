import { type Alteration, alterEngine } from '../../conformance/alter.ts'
import type { CreateStore } from './stores.ts'

/** A store whose engines have a flaw. What the flaw remembers is shared by them, one store long. */
export function alteredStore(create: CreateStore, alter: (nowMs: () => number) => Alteration): CreateStore {
  return async (clock) => {
    const store = await create(clock)
    const alteration = alter(() => clock.nowMs())
    return { ...store, open: async () => alterEngine(await store.open(), alteration) }
  }
}
