import type { Mill } from '../client/mill.ts'
import { OptionError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import type { WatchedTopics } from './serving.ts'

export interface PresetWorker {
  /** By which it is known in logs, heartbeats and dead letters. */
  readonly id: string
  /** The engine as this worker uses it: workers that all read all of a topic have groups of their own. */
  readonly engine: string
  readonly jobs: readonly AnyJob[]
}

/** What a handler of a preset did, as a line of its record. */
export type Deed = Readonly<Record<string, unknown>>

/** A topology that can be tried without a line of code: workers whose handlers only note what they would have done. */
export interface Preset {
  /** Throws an OptionError when it cannot run on that engine. */
  workers(engine: string, note: (deed: Deed) => void): readonly PresetWorker[]
  /** Creates what is missing. */
  prepare(mill: Mill): Promise<void>
  readonly watched: WatchedTopics
  /** What to type to see it work, and what each line shows. */
  examples(engine: string): readonly (readonly [command: string, what: string])[]
}

/** Loaded only when they are asked for. */
const PRESETS: Readonly<Record<string, () => Promise<{ readonly preset: Preset }>>> = {
  escrow: () => import('../../workloads/escrow/preset.ts'),
}

export const PRESET_NAMES: readonly string[] = Object.keys(PRESETS)

export async function loadPreset(name: string): Promise<Preset> {
  const load = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined
  if (load === undefined)
    throw new OptionError(`there is no preset '${name}'; there is ${PRESET_NAMES.map((one) => `'${one}'`).join(', ')}`)
  return (await load()).preset
}
