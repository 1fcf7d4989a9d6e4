/** Where a round finds the store of its engine. Each engine adds one line: its name, and a function that loads its file on demand. */
import type { EngineName, OpenStore } from '../scene.ts'

export const ENGINES: Partial<Readonly<Record<EngineName, () => Promise<OpenStore>>>> = {
  sqlite: async () => (await import('./sqlite.ts')).openSqlite,
}
