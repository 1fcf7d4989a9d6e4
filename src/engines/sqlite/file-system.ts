/** Which kind of file system holds a path. SQLite's WAL needs reliable locks and shared memory. */
import { readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { EngineError } from '../../errors.ts'

/** The text of /proc/mounts; null where the system has none. */
export const readMounts = (): Promise<string | null> => readFile('/proc/mounts', 'utf8').catch(() => null)

/** Locks and shared memory do not work across machines, or not at all: WAL on them corrupts or hangs. */
const NETWORK = new Set(['nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'afs', 'ceph', 'lustre', 'davfs', 'ncpfs'])
const NETWORK_FUSE = /^fuse\.(?:sshfs|rclone|s3fs|glusterfs|gcsfuse|ceph(?:-fuse)?|davfs2?|smbnetfs|juicefs|goofys)$/
const IN_MEMORY = new Set(['tmpfs', 'ramfs'])
/** Directories shared with the host of a virtual machine. Whether locks work depends on the host. */
const SHARED = new Set([
  '9p',
  'virtiofs',
  'vboxsf',
  'fuse.vmhgfs-fuse',
  'prl_fs',
  'fakeowner',
  'fuse.grpcfuse',
  'drvfs',
])

/** The file system of the longest mount point above the path. Of equal ones the last mounted counts. */
export function fileSystemOf(path: string, mounts: string): string | null {
  let found: { readonly point: string; readonly type: string } | null = null
  for (const line of mounts.split('\n')) {
    const [, escaped, type] = line.split(' ')
    if (escaped === undefined || type === undefined) continue
    const point = escaped.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    const isAbove = point === '/' || path === point || path.startsWith(`${point}/`)
    if (isAbove && (found === null || point.length >= found.point.length)) found = { point, type }
  }
  return found?.type ?? null
}

export function isNetwork(type: string): boolean {
  return NETWORK.has(type) || NETWORK_FUSE.test(type)
}

export function isInMemory(type: string): boolean {
  return IN_MEMORY.has(type)
}

export function isShared(type: string): boolean {
  return SHARED.has(type) || type.startsWith('fuse.')
}

/** Refuses a file on a network file system before touching it: corruption later would lose more. */
export async function assertLocal(file: string, mounts: string | null): Promise<void> {
  if (mounts === null) return
  const folder = await realpath(dirname(file)).catch(() => dirname(file))
  const type = fileSystemOf(join(folder, basename(file)), mounts)
  if (type === null || !isNetwork(type)) return
  throw new EngineError(
    'ERR_STORAGE_OPEN',
    `'${file}' is on ${type}, a network file system, where WAL can corrupt the file; keep it on a local disk of the one machine that uses it`,
  )
}
