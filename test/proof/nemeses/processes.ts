/** Faults of single processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CrewProcess, Nemesis, Scene } from '../scene.ts'

/** Below the lease of a second, about it, and well beyond it. */
const PAUSES_MS = [300, 1_000, 2_500, 4_000]

const kill: Nemesis = {
  name: 'kill',
  does: 'ends a process with SIGKILL; another one takes its place',
  strike: (scene, random) =>
    onOne(scene, random, 'kill', async (process) => {
      process.signal('SIGKILL')
      await process.exited
      await scene.crew.replace(process)
    }),
}

const pause: Nemesis = {
  name: 'pause',
  does: 'stops a process with SIGSTOP for less or for more than a lease, and lets it go on',
  strike: (scene, random) => {
    const forMs = pick(PAUSES_MS, random) * (0.75 + random() / 2)
    return onOne(
      scene,
      random,
      'pause',
      async (process) => {
        process.signal('SIGSTOP')
        await sleep(forMs)
        process.signal('SIGCONT')
      },
      `${Math.round(forMs)} ms`,
    )
  },
}

export const PROCESS_NEMESES: readonly Nemesis[] = [kill, pause]

/** Strikes one process of any role. */
async function onOne(
  scene: Scene,
  random: () => number,
  nemesis: string,
  strike: (process: CrewProcess) => Promise<void>,
  detail?: string,
): Promise<void> {
  const process = pick(scene.crew.processes, random)
  await scene.during({ nemesis, target: process.name, ...(detail !== undefined && { detail }) }, () => strike(process))
}

export function pick<Item>(items: readonly Item[], random: () => number): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}
