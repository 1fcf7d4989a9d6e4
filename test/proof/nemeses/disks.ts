/** Faults of the disk that a store of files lies on. */
import { systemClock } from '../../../src/time/clock.ts'
import type { Disk } from '../disk.ts'
import type { Nemesis, Scene } from '../scene.ts'
import { between } from './random.ts'

/** `truncate`: makes the next write of the store need space. */
export function diskNemeses(disk: Disk | null, truncate: () => Promise<void>): readonly Nemesis[] {
  const excuse = (): string | null => (disk === null ? 'only root can mount a disk of its own' : null)
  const mounted = (): Disk => {
    if (disk === null) throw new Error('there is no disk of its own')
    return disk
  }
  const full: Nemesis = {
    name: 'disk-full',
    does: 'takes all space of the disk for up to three seconds',
    excuse,
    strike: (scene, random) => {
      const forMs = between(random, 200, 3_000)
      return scene.during({ nemesis: 'disk-full', target: null, detail: `${forMs} ms` }, async () => {
        await truncate()
        mounted().fill()
        try {
          await systemClock.sleep(forMs)
        } finally {
          mounted().free()
        }
      })
    },
  }
  const stalls: Nemesis = {
    name: 'disk-stalls',
    does: 'lets every write and sync wait for up to three seconds',
    excuse,
    strike: (scene, random) =>
      freeze(scene, 'disk-stalls', mounted(), { forMs: between(random, 200, 3_000), times: 1, restMs: 0 }),
  }
  const slow: Nemesis = {
    name: 'disk-slow',
    does: 'lets writes and syncs wait again and again, for up to 150 ms each time',
    excuse,
    strike: (scene, random) => {
      const [forMs, restMs] = [between(random, 20, 150), between(random, 5, 50)]
      const times = Math.ceil(between(random, 1_000, 3_000) / (forMs + restMs))
      return freeze(scene, 'disk-slow', mounted(), { forMs, times, restMs })
    },
  }
  return [full, stalls, slow]
}

interface Freezing {
  readonly forMs: number
  readonly times: number
  readonly restMs: number
}

function freeze({ during }: Scene, nemesis: string, disk: Disk, { forMs, times, restMs }: Freezing): Promise<void> {
  return during({ nemesis, target: null, detail: `${times} times ${forMs} ms` }, () =>
    disk.freeze(forMs, times, restMs),
  )
}
