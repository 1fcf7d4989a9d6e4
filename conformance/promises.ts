import type { Capabilities } from '../src/engine/capabilities.ts'
import { type Documented, type FacetName, facetsOf } from './document.ts'
import type { CreateHarness } from './harness.ts'
import { type EngineRow, promisedRow } from './matrix.ts'
import { table } from './table.ts'

/** Opens each engine once and derives its row from what it declares. The engines' own tests show that the row is true. */
export async function promises(engines: Readonly<Record<string, CreateHarness>>): Promise<Documented> {
  const cases = table.flatMap((file) => file.cases)
  const capabilities: Record<string, Capabilities> = {}
  const facets: Record<string, readonly FacetName[]> = {}
  const matrix: Record<string, EngineRow> = {}
  for (const [name, create] of Object.entries(engines)) {
    const harness = await create()
    capabilities[name] = harness.engine.capabilities
    facets[name] = facetsOf(harness.engine)
    matrix[name] = promisedRow(harness.engine, cases)
    await harness.destroy()
  }
  return { capabilities, facets, matrix }
}
