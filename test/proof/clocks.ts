/** Wall clocks that can be set: libfaketime reads them from files, and leaves the monotonic clock alone. */
import { globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../servers/apt.ts'

/** One clock of a machine: of all processes that were given its `env`. */
export class FakedClock {
  readonly env: Readonly<Record<string, string>>
  readonly #file: string
  #offsetMs = 0

  constructor(preload: string, file: string) {
    this.#file = file
    this.env = {
      LD_PRELOAD: preload,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    }
    this.set(0)
  }

  /** Removes what the library of a process that was killed has left: the next one with its pid would fail. */
  forget(pid: number): void {
    for (const name of ['faketime_shm_', 'sem.faketime_sem_']) rmSync(`/dev/shm/${name}${pid}`, { force: true })
  }

  /** Against the real time. */
  get offsetMs(): number {
    return this.#offsetMs
  }

  /** A reader finds the old file or the new one, never half of it. */
  set(offsetMs: number): void {
    this.#offsetMs = offsetMs
    writeFileSync(`${this.#file}.new`, `${offsetMs < 0 ? '-' : '+'}${(Math.abs(offsetMs) / 1_000).toFixed(3)}\n`)
    renameSync(`${this.#file}.new`, this.#file)
  }
}

/** The clocks of a run. */
export class Clocks {
  readonly #preload: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-clocks-'))
  #count = 0
  /** The one that all processes of a machine share. */
  readonly machine: FakedClock

  /** Null where libfaketime is not installed and cannot be. */
  static create(): Clocks | null {
    // The library is asked for by its path: the program names a semaphore by its pid, and fails where a killed one left its own.
    if (findProgram('faketime', 'faketime') === null) return null
    const [library] = globSync('/usr/{lib,lib64,lib/*}/faketime/libfaketimeMT.so.1')
    return library === undefined ? null : new Clocks(library)
  }

  private constructor(preload: string) {
    this.#preload = preload
    this.machine = this.next()
  }

  next(): FakedClock {
    this.#count += 1
    return new FakedClock(this.#preload, join(this.#folder, String(this.#count)))
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
