/** Two versions of the package, each packed and installed into a folder of its own: an earlier one, and the present tree. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { copySources, MODULES, pack, run } from '../package/build.ts'
import { ROOT } from '../readme/blocks.ts'
import released from './released.json' with { type: 'json' }

export interface InstalledPackage {
  /** For reports. */
  readonly label: string
  /** A project that depends on it. Its folder has the programs of the test. */
  readonly folder: string
  /** The file of the `millrace` command. */
  readonly command: string
}

const PROGRAMS = ['producer.ts', 'worker.ts', 'lines.ts']

function commitOf(revision: string): string | null {
  const { status, stdout } = spawnSync('git', ['rev-parse', '--verify', '--quiet', `${revision}^{commit}`], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  return status === 0 ? stdout.trim() : null
}

/** The state that was released last, or the commit before this one. Null in a clone without either, such as a shallow one. */
export function previousCommit(): string | null {
  return commitOf(released.commit) ?? commitOf('HEAD^1')
}

/** Tarballs stay in the folder for temporary files, by commit, because a commit never changes. */
function packCommit(commit: string): string {
  const cache = path.join(tmpdir(), `millrace-packages-${userInfo().username}`)
  const kept = path.join(cache, `${commit}.tgz`)
  if (existsSync(kept)) return kept
  mkdirSync(cache, { recursive: true })
  return inFolder((folder) => {
    run('sh', ['-c', 'git archive --format=tar "$0" | tar -x -C "$1"', commit, folder], ROOT)
    const packed = path.join(cache, `${commit}.${process.pid}.tgz`)
    cpSync(pack(folder), packed)
    renameSync(packed, kept)
    return kept
  })
}

function inFolder<Value>(run: (folder: string) => Value): Value {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-pack-'))
  try {
    return run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** `revision`: anything that git knows. Null: there is no such commit in this clone. */
export function installCommit(revision: string, project: string): InstalledPackage | null {
  const commit = commitOf(revision)
  return commit === null ? null : install(packCommit(commit), project, commit.slice(0, 10))
}

export function installPresent(project: string): InstalledPackage {
  return inFolder((folder) => {
    const copy = path.join(folder, 'copy')
    copySources(copy)
    return install(pack(copy), project, 'present')
  })
}

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** Without the network: what the package depends on is linked to the node_modules of this tree. */
function install(tarball: string, project: string, label: string): InstalledPackage {
  const modules = path.join(project, 'node_modules')
  const own = path.join(modules, 'millrace')
  mkdirSync(own, { recursive: true })
  run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'], project)
  const manifest: Manifest = JSON.parse(readFileSync(path.join(own, 'package.json'), 'utf8'))
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    if (!existsSync(path.join(MODULES, name))) continue
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true })
    symlinkSync(path.join(MODULES, name), path.join(modules, name), 'dir')
  }
  for (const program of PROGRAMS)
    cpSync(fileURLToPath(new URL(`./programs/${program}`, import.meta.url)), path.join(project, program))
  return { label, folder: project, command: path.join(own, manifest.bin.millrace ?? '') }
}
