/** What operators do to the file of a store, with the wrong order of steps and with the right one (docs/operating-sqlite.md). */
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Fault } from '../../../proof/history/entry.ts'
import { systemClock } from '../../../src/time/clock.ts'
import type { Nemesis, Scene } from '../scene.ts'
import { mustRun } from './files-programs.ts'
import { between } from './random.ts'

/** The file, its log and the index of the log belong together. */
const parts = (file: string): readonly string[] => [file, `${file}-wal`, `${file}-shm`]

function removeParts(file: string): void {
  for (const part of parts(file)) rmSync(part, { force: true })
}

/** Takes the place of what may be there. */
function moveParts(file: string, to: string): void {
  for (const [index, part] of parts(file).entries()) {
    const target = parts(to)[index] ?? ''
    if (existsSync(part)) renameSync(part, target)
    else rmSync(target, { force: true })
  }
}

type Striking = (scene: Scene, random: () => number) => Promise<void>

function ofFile(name: string, does: string, allows: Pick<Fault, 'allows' | 'recentMs'>, strike: Striking): Nemesis {
  return {
    name,
    does,
    strike: (scene, random) => scene.during({ nemesis: name, target: null, ...allows }, () => strike(scene, random)),
  }
}

/** What was acknowledged since the backup is undone; the fault begins before it is made. */
const SINCE_BACKUP = { allows: ['lose-recent'], recentMs: 0 } as const

/** Half a second later at the latest the processes refuse what would be written to a file that is gone. */
const UNTIL_NOTICED = { allows: ['lose-all'], undoesForMs: 500 } as const

/** A process that is killed leaves in the log what was acknowledged, so the log is not deleted and all are stopped once more. */
const ORDERLY_TRIES_MAX = 3

/** So long the processes go on with a file that is not theirs any more: less and more than they need to notice it. */
const noticing = (random: () => number): Promise<void> => systemClock.sleep(between(random, 100, 2_500))

export function fileNemeses(file: string): readonly Nemesis[] {
  const aside = join(dirname(file), 'aside', basename(file))
  const copy = `${file}.copy`
  const backUp = async (random: () => number): Promise<void> => {
    rmSync(copy, { force: true })
    await mustRun(file, [`VACUUM INTO '${copy}'`])
    await systemClock.sleep(between(random, 100, 2_000))
  }
  /** Without the old log, and untouched by who may have opened the new file beside it. */
  const restore = (): void => {
    removeParts(file)
    renameSync(copy, file)
  }
  return [
    ofFile(
      'file-moved',
      'moves the file away under the processes, stops them, puts it back and starts them',
      {},
      ({ crew }, random) =>
        crew.whileStopped('SIGTERM', {
          before: async () => {
            mkdirSync(dirname(aside), { recursive: true })
            moveParts(file, aside)
            await noticing(random)
          },
          act: async () => moveParts(aside, file),
        }),
    ),
    {
      name: 'file-deleted',
      does: 'deletes the file under the processes, stops and starts them',
      async strike({ crew, during }, random) {
        const over = Promise.withResolvers<void>()
        let fault = Promise.resolve()
        await crew.whileStopped('SIGTERM', {
          before: async () => {
            fault = during({ nemesis: 'file-deleted', target: null, ...UNTIL_NOTICED }, () => {
              removeParts(file)
              return over.promise
            })
            await noticing(random)
          },
          act: async () => removeParts(file),
        })
        over.resolve()
        await fault
      },
    },
    ofFile(
      'file-swapped',
      'puts a backup in the place of the file under the processes, stops and starts them',
      SINCE_BACKUP,
      async ({ crew }, random) => {
        await backUp(random)
        await crew.whileStopped('SIGTERM', {
          before: async () => {
            // A new file under the old name, as a copy program or a deployment makes it.
            copyFileSync(copy, `${copy}.placed`)
            renameSync(`${copy}.placed`, file)
            await noticing(random)
          },
          act: async () => restore(),
        })
      },
    ),
    ofFile(
      'backup-restored',
      'makes a backup, stops the processes, restores it and starts them',
      SINCE_BACKUP,
      async ({ crew }, random) => {
        await backUp(random)
        await crew.whileStopped(random() < 0.5 ? 'SIGTERM' : 'SIGKILL', {
          act: async () => restore(),
        })
      },
    ),
    ofFile(
      'log-removed',
      'stops all processes, deletes the log and its index, and starts them',
      {},
      async ({ crew }) => {
        let isRemoved = false
        for (let tries = 0; !isRemoved && tries < ORDERLY_TRIES_MAX; tries += 1)
          await crew.whileStopped('SIGTERM', {
            act: async (isOrderly) => {
              if (isOrderly) for (const part of parts(file).slice(1)) rmSync(part, { force: true })
              isRemoved = isOrderly
            },
          })
      },
    ),
    ofFile('index-removed', 'kills all processes, deletes the index of the log, and starts them', {}, ({ crew }) =>
      crew.whileStopped('SIGKILL', { act: async () => rmSync(`${file}-shm`, { force: true }) }),
    ),
  ]
}
