/** Strikes at the times that the seed says. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Recorder } from '../../proof/history/recorder.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { lockOf } from './nemeses/index.ts'
import type { Nemesis, Scene } from './scene.ts'

/** Between two faults. Several may be under way at once. */
const GAP_MS_MIN = 100
const GAP_MS_MAX = 1_100
const FAULTS_AT_ONCE = 3

export interface Striking {
  readonly scene: Scene
  readonly nemeses: readonly Nemesis[]
  readonly faults: number
  readonly seed: number
  onFault(nemesis: string): void
}

/** Each fault has random numbers of its own, so that it is the same whatever became of those before it. */
export async function strikeAll({ scene, nemeses, faults, seed, onFault }: Striking): Promise<void> {
  const random = seededRandom(seed)
  const active = new Set<Promise<void>>()
  const locks = new Map<string | null, Promise<void>>()
  const errors: unknown[] = []
  for (const nemesis of inTurn(nemeses, faults, random)) {
    const own = seededRandom(Math.floor(random() * 2 ** 31))
    await sleep(GAP_MS_MIN + random() * (GAP_MS_MAX - GAP_MS_MIN))
    while (active.size >= FAULTS_AT_ONCE) await Promise.race(active)
    if (errors.length > 0) break
    onFault(nemesis.name)
    const lock = lockOf(nemesis)
    const strike = (): Promise<void> => nemesis.strike(scene, own)
    const struck = lock === null ? strike() : (locks.get(lock) ?? Promise.resolve()).then(strike)
    const over = struck.catch((error: unknown) => void errors.push(error)).finally(() => active.delete(over))
    locks.set(lock, over)
    active.add(over)
  }
  await Promise.all(active)
  if (errors.length > 0) throw new AggregateError(errors, 'a nemesis failed')
}

/** In random order, and none again before all others have struck. */
function inTurn(nemeses: readonly Nemesis[], faults: number, random: () => number): readonly Nemesis[] {
  const turns: Nemesis[] = []
  let left: Nemesis[] = []
  while (turns.length < faults && nemeses.length > 0) {
    if (left.length === 0) left = [...nemeses]
    turns.push(...left.splice(Math.floor(random() * left.length), 1))
  }
  return turns
}

/** Writes faults down. */
export function faultRecorder(recorder: Recorder): Scene['during'] {
  let count = 0
  return async (fault, strike) => {
    count += 1
    const number = count
    recorder.note({ what: 'fault', fault: number, ...fault })
    try {
      await strike()
    } finally {
      recorder.note({ what: 'healed', fault: number })
    }
  }
}
