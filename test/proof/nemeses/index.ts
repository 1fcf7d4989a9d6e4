/** The faults that a round can choose from: those of processes, of the wire, and the store's own. */
import type { Nemesis, Store } from '../scene.ts'
import { CLOCK_NEMESES } from './clock.ts'
import { PROCESS_NEMESES } from './processes.ts'
import { wireNemeses } from './wires.ts'

/** Those that every engine has. Another file of nemeses adds its list here. */
const NEMESES: readonly Nemesis[] = [...PROCESS_NEMESES, ...CLOCK_NEMESES, ...wireNemeses]

export function allNemeses(store: Store): readonly Nemesis[] {
  return [...NEMESES, ...store.nemeses]
}

/** Those that can strike this store. Throws for a name that does not exist. */
export function chosenNemeses(store: Store, names: readonly string[] | 'all'): readonly Nemesis[] {
  const all = allNemeses(store)
  const unknown = names === 'all' ? [] : names.filter((name) => !all.some((nemesis) => nemesis.name === name))
  if (unknown.length > 0) {
    throw new Error(
      `--nemesis has no '${unknown.join(`', '`)}'; give some of ${all.map(({ name }) => name).join(', ')}`,
    )
  }
  const asked = names === 'all' ? all : all.filter(({ name }) => names.includes(name))
  const able = asked.filter((nemesis) => (nemesis.excuse?.(store) ?? null) === null)
  if (able.length > 0 || asked.length === 0) return able
  throw new Error(`none of --nemesis can strike ${store.engine}: ${asked[0]?.excuse?.(store)}`)
}

/** Faults that share a lock strike one after another: a server that is down cannot be frozen. Null: at any time. */
export function lockOf(nemesis: Nemesis): string | null {
  if (PROCESS_NEMESES.includes(nemesis)) return null
  return CLOCK_NEMESES.includes(nemesis) ? 'clock' : 'store'
}
