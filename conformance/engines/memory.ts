import { MemoryEngine, MemoryStore } from '../../src/engines/memory/index.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import type { Harness } from '../harness.ts'

/** Views share a store; time is virtual. */
export async function memoryHarness(clock: TestClock = new TestClock()): Promise<Harness> {
  const store = new MemoryStore({ finishedMax: 100_000 })
  const views: MemoryEngine[] = []
  const view = async (): Promise<MemoryEngine> => {
    const engine = new MemoryEngine({ clock, store })
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
