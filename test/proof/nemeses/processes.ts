/** Faults of single processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../../../proof/history/entry.ts'
import { VERSION } from '../part.ts'
import type { CrewProcess, Nemesis, Scene, Store } from '../scene.ts'
import { pick } from './random.ts'

/** Below the lease of a second, about it, and well beyond it. */
const PAUSES_MS = [300, 1_000, 2_500, 4_000]

/** Opening a store and joining takes a few milliseconds, or with a consumer group half a second. */
const OPENING_MS_MAX = 500

function excuseIfStoreEnds({ capabilities }: Store): string | null {
  return capabilities.survives === 'nothing' ? 'its jobs end with their process' : null
}

async function replaceAfter(signal: 'SIGKILL' | 'SIGTERM', { crew }: Scene, process: CrewProcess): Promise<void> {
  process.signal(signal)
  await process.exited
  await crew.replace(process)
}

const kill: Nemesis = {
  name: 'kill',
  does: 'ends a process with SIGKILL; another one takes its place',
  excuse: excuseIfStoreEnds,
  strike: (scene, random) =>
    onOne(scene, random, { nemesis: 'kill' }, (process) => replaceAfter('SIGKILL', scene, process)),
}

const pause: Nemesis = {
  name: 'pause',
  does: 'stops a process with SIGSTOP for less or for more than a lease, and lets it go on',
  strike: (scene, random) => {
    const forMs = pick(random, PAUSES_MS) * (0.75 + random() / 2)
    return onOne(scene, random, { nemesis: 'pause', detail: `${Math.round(forMs)} ms` }, async (process) => {
      process.signal('SIGSTOP')
      await sleep(forMs)
      process.signal('SIGCONT')
    })
  },
}

const term: Nemesis = {
  name: 'term',
  does: 'asks a process to stop with SIGTERM, whatever it does; another one takes its place',
  strike: (scene, random) =>
    onOne(scene, random, { nemesis: 'term', isRequest: true }, (process) => replaceAfter('SIGTERM', scene, process)),
}

const opening: Nemesis = {
  name: 'opening',
  does: 'starts a worker or a keeper and ends it with SIGTERM or SIGKILL while it opens the store and joins',
  excuse: excuseIfStoreEnds,
  async strike(scene, random) {
    const signal = random() < 0.5 ? 'SIGTERM' : 'SIGKILL'
    const process = scene.crew.launch(random() < 0.7 ? 'worker' : 'keeper')
    const afterMs = random() * OPENING_MS_MAX
    const fault = { nemesis: 'opening', target: process.name, detail: `${signal} after ${Math.round(afterMs)} ms` }
    await scene.during({ ...fault, ...(signal === 'SIGTERM' && { isRequest: true }) }, async () => {
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
    scene.during({ nemesis: 'rolling', target: null, isRequest: true }, async () => {
      const workers = scene.crew.processes.filter(({ role }) => role === 'worker')
      for (const process of workers) await replaceAfter('SIGTERM', scene, process)
    }),
}

const block: Nemesis = {
  name: 'block',
  does: 'blocks the event loop of a process for less or for more than a lease',
  strike: (scene, random) => {
    const forMs = pick(random, PAUSES_MS) * (0.75 + random() / 2)
    return onOne(scene, random, { nemesis: 'block', detail: `${Math.round(forMs)} ms` }, async (process) => {
      process.block(forMs)
      await Promise.race([sleep(forMs), process.exited])
    })
  },
}

const versions: Nemesis = {
  name: 'versions',
  does: 'lets a worker with handlers of an older or a newer payload version join, work and leave',
  async strike(scene, random) {
    const version = pick(random, ['1', '2'])
    const process = scene.crew.launch('worker', { [VERSION]: version })
    const forMs = 1_000 + random() * 2_000
    const fault = { nemesis: 'versions', target: process.name, detail: `version ${version}`, isRequest: true } as const
    await scene.during(fault, async () => {
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
  fault: Omit<Fault, 'what' | 'fault' | 'target'>,
  strike: (process: CrewProcess) => Promise<void>,
): Promise<void> {
  const process = pick(random, scene.crew.processes)
  await scene.during({ ...fault, target: process.name }, () => strike(process))
}
