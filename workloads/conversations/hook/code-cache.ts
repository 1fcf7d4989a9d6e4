/**
 * What V8 made of the hook's code, kept in the home folder. Most of a short run is compiling code that was compiled the time
 * before, so the built file (scripts/hook.ts) is this start and the rest as a text, which is compiled with the help of the cache.
 * A cache is code: it is only taken from a file and a folder that nobody else can write. Whatever is wrong with it, the hook
 * is slower and nothing else.
 */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Script } from 'node:vm'
import { homeFolder } from '../../../src/engines/sqlite/home-folder.ts'

/** Other versions of Node and of the hook have caches of their own. The oldest ones go. */
const CACHES_MAX = 4
/** It has about 200 kB. */
const BYTES_MAX = 4_194_304
const WRITABLE_BY_OTHERS = 0o022

export interface HookCode {
  readonly script: Script
  /** Null where there is no home folder. */
  readonly file: string | null
  /** False when the code was compiled anew. */
  readonly isCached: boolean
}

/** Compiles the code. `hash` is that of its text. */
export function compileHook(text: string, hash: string): HookCode {
  const file = cacheFile(hash)
  const cachedData = file === null ? undefined : readCache(file)
  const script = new Script(text, { filename: 'millrace-hook', ...(cachedData && { cachedData }) })
  return { script, file, isCached: cachedData !== undefined && script.cachedDataRejected === false }
}

function cacheFile(hash: string): string | null {
  const home = homeFolder()
  return home === null ? null : join(home, '.millrace', `hook-${hash}-${process.version}-${process.arch}.cache`)
}

/**
 * The file has the cache twice, because V8 crashes on a damaged one: comparing two copies takes 0.03 ms, a checksum in
 * cold code 2 ms, and loading node:zlib or node:crypto for one 5 ms.
 */
function readCache(file: string): Buffer | undefined {
  try {
    if (!isOurs(statSync(dirname(file)))) return undefined
    // Opening a pipe would wait for a writer.
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = fstatSync(descriptor)
      if (!isOurs(stats) || !stats.isFile() || stats.size > BYTES_MAX) return undefined
      const bytes = Buffer.allocUnsafeSlow(stats.size)
      if (readSync(descriptor, bytes) !== stats.size) return undefined
      const [first, second] = [bytes.subarray(0, stats.size / 2), bytes.subarray(stats.size / 2)]
      return first.length > 0 && first.equals(second) ? first : undefined
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return undefined
  }
}

/** Of this user and not writable by others. Windows has neither, and the home folder there is its user's own. */
function isOurs({ uid, mode }: Stats): boolean {
  const own = process.getuid?.()
  return own === undefined || (uid === own && (mode & WRITABLE_BY_OTHERS) === 0)
}

/** Call when the hook has done all that it usually does: the cache has the functions that were needed until then. */
export function saveHookCode({ script, file, isCached }: HookCode): void {
  if (isCached || file === null) return
  const draft = `${file}.${process.pid}`
  try {
    const folder = dirname(file)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (!isOurs(statSync(folder))) return
    const bytes = script.createCachedData()
    const descriptor = openSync(draft, 'wx', 0o600)
    try {
      for (const copy of [bytes, bytes]) if (writeSync(descriptor, copy) !== copy.length) throw new Error('full')
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, file)
    removeOldest(folder)
  } catch {
    try {
      rmSync(draft, { force: true })
    } catch {}
  }
}

/** Drafts of hooks that were killed are among them. */
function removeOldest(folder: string): void {
  const names = readdirSync(folder).filter((name) => /^hook-[^/]+\.cache/.test(name))
  const ages = names.map((name) => ({ name, mtimeMs: statSync(join(folder, name)).mtimeMs }))
  ages.sort((one, other) => other.mtimeMs - one.mtimeMs)
  for (const { name } of ages.slice(CACHES_MAX)) rmSync(join(folder, name), { force: true })
}
