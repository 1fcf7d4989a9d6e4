/** Faults of single processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { VERSION } from '../part.ts'
import type { CrewProcess, Nemesis, Scene } from '../scene.ts'

/** Below the lease of a second, about it, and well beyond it. */
const PAUSES_MS = [300, 1_000, 2_500, 4_000]

/** Opening a store and joining takes a few milliseconds, or with a consumer group half a second. */
const OPENING_MS_MAX = 500

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

const term: Nemesis = {
  name: 'term',
  does: 'asks a process to stop with SIGTERM, whatever it does; another one takes its place',
  strike: (scene, random) =>
    onOne(scene, random, 'term', async (process) => {
      process.signal('SIGTERM')
      await process.exited
      await scene.crew.replace(process)
    }),
}

const opening: Nemesis = {
  name: 'opening',
  does: 'starts a worker or a keeper and ends it with SIGTERM or SIGKILL while it opens the store and joins',
  async strike(scene, random) {
    const signal = random() < 0.5 ? 'SIGTERM' : 'SIGKILL'
    const process = scene.crew.launch(random() < 0.7 ? 'worker' : 'keeper')
    const afterMs = random() * OPENING_MS_MAX
    const detail = `${signal} after ${Math.round(afterMs)} ms`
    await scene.during({ nemesis: 'opening', target: process.name, detail }, async () => {
      await sleep(afterMs)
      process.signal(signal)
      await process.exited
    })
  },
}

const rolling: Nemesis = {
  name: 'rolling',
  does: 'replaces all workers, one after another, as a deployment does',
  strike: (scene) =>
    scene.during({ nemesis: 'rolling', target: null }, async () => {
      for (const process of scene.crew.processes.filter(({ role }) => role === 'worker')) {
        process.signal('SIGTERM')
        await process.exited
        await scene.crew.replace(process)
      }
    }),
}

const block: Nemesis = {
  name: 'block',
  does: 'blocks the event loop of a process for less or for more than a lease',
  strike: (scene, random) => {
    const forMs = pick(PAUSES_MS, random) * (0.75 + random() / 2)
    const strike = async (process: CrewProcess): Promise<void> => {
      process.block(forMs)
      await Promise.race([sleep(forMs), process.exited])
    }
    return onOne(scene, random, 'block', strike, `${Math.round(forMs)} ms`)
  },
}

const versions: Nemesis = {
  name: 'versions',
  does: 'lets a worker with handlers of an older or a newer payload version join, work and leave',
  async strike(scene, random) {
    const version = pick(['1', '2'], random)
    const process = scene.crew.launch('worker', { [VERSION]: version })
    const forMs = 1_000 + random() * 2_000
    await scene.during({ nemesis: 'versions', target: process.name, detail: `version ${version}` }, async () => {
      await Promise.race([sleep(forMs), process.exited])
      process.signal('SIGTERM')
      await process.exited
    })
  },
}

export const PROCESS_NEMESES: readonly Nemesis[] = [kill, pause, term, opening, rolling, block, versions]

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
