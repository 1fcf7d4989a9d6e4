/** A small disk for one round, which can be filled and frozen without harming other programs. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Disk {
  /** Where it is mounted. */
  readonly folder: string
  /** Takes all space that is left, until `free`. */
  fill(): void
  free(): void
  /** For so long every write waits, and every sync. Repeatedly, with a rest after each time, it is a slow disk. */
  freeze(forMs: number, times?: number, restMs?: number): Promise<void>
  remove(): void
}

/** Ample for a round: its file, a log that a long reader keeps, and a backup. */
const SIZE = '512M'
const run = promisify(execFile)

/** Null: this user cannot mount one. */
export function mountDisk(folder: string): Disk | null {
  const image = join(folder, 'disk.img')
  const mounted = join(folder, 'disk')
  const filling = join(mounted, 'filling')
  mkdirSync(mounted)
  try {
    execFileSync('truncate', ['-s', SIZE, image], { stdio: 'pipe' })
    execFileSync('mkfs.ext4', ['-q', '-m', '0', '-F', image], { stdio: 'pipe' })
    execFileSync('mount', ['-o', 'loop,noatime', image, mounted], { stdio: 'pipe' })
  } catch {
    return null
  }
  const remove = (): void => {
    process.off('exit', remove)
    execFileSync('umount', ['-l', mounted], { stdio: 'pipe' })
    rmSync(image)
  }
  // Also when the run is interrupted in the middle of a round.
  process.on('exit', remove)
  return {
    folder: mounted,
    fill: () => {
      // It asks for more than there is: all that is left is taken, and then it fails.
      try {
        execFileSync('fallocate', ['-l', SIZE, filling], { stdio: 'pipe' })
      } catch {}
    },
    free: () => rmSync(filling, { force: true }),
    freeze: async (forMs, times = 1, restMs = 0) => {
      await run('sh', ['-c', FREEZE, mounted, String(forMs / 1_000), String(times), String(restMs / 1_000)])
    },
    remove,
  }
}

/** A separate program, because a process that touches a frozen disk hangs and could not thaw it. It also thaws if the round ends. */
const FREEZE = `
trap 'fsfreeze -u "$0" 2> /dev/null' EXIT
for i in $(seq "$2"); do fsfreeze -f "$0"; sleep "$1"; fsfreeze -u "$0"; sleep "$3"; done; true`
