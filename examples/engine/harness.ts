import type { Harness } from 'millrace/conformance'
import { TestClock } from 'millrace/testing'
import { ArrayEngine, Store } from './array-engine.ts'

/** A fresh store for each case, on a clock that the suite moves. */
export async function arrayHarness(): Promise<Harness & { readonly engine: ArrayEngine }> {
  const clock = new TestClock()
  const store = new Store()
  const views: ArrayEngine[] = []
  const view = async (): Promise<ArrayEngine> => {
    const engine = new ArrayEngine(clock, store)
    views.push(engine)
    return engine
  }
  return {
    engine: await view(),
    clock,
    other: view,
    advance: (ms) => clock.advance(ms),
    destroy: async () => {
      for (const engine of views) await engine.close()
    },
  }
}
