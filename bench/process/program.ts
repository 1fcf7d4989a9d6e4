/**
 * The code that measuring processes run: what a user installs, compiled to JavaScript. From the sources Node would strip
 * the types at every start, which costs each process about 40 MB and a good part of its start-up.
 */
import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Assignment, Companion } from './line.ts'

export interface Program {
  start(assignment: Assignment): Companion
}

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url))
const CONFIG = join(REPOSITORY, 'bench', 'tsconfig.json')

/** Compiles the library and the bench into `dir`. Types are not checked here: `npm run check` does that. */
export async function buildProgram(dir: string): Promise<Program> {
  await mkdir(dir, { recursive: true })
  await writeFile(join(dir, 'package.json'), '{ "type": "module" }\n')
  await symlink(join(REPOSITORY, 'node_modules'), join(dir, 'node_modules'), 'junction')
  await promisify(execFile)(compilerPath(), ['-p', CONFIG, '--noCheck', '--outDir', dir])
  const builtUrl = (sourceUrl: string): string => {
    const path = relative(REPOSITORY, fileURLToPath(sourceUrl)).replace(/\.ts$/, '.js')
    return pathToFileURL(join(dir, path)).href
  }
  const line: typeof import('./line.ts') = await import(builtUrl(new URL('line.ts', import.meta.url).href))
  return {
    start: (assignment) => {
      const entry = { ...assignment.entry, module: builtUrl(assignment.entry.module) }
      return line.startProcess({ ...assignment, entry })
    },
  }
}

function compilerPath(): string {
  const manifestPath = createRequire(import.meta.url).resolve('typescript/package.json')
  return join(dirname(dirname(manifestPath)), '.bin', 'tsc')
}
