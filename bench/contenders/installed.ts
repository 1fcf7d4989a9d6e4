/** A folder with packages in it, as a program's own folder has them after `npm install`. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Of the repository, whether this file is the source or was compiled elsewhere beside a link to them. */
const MODULES = realpathSync(fileURLToPath(new URL('../../node_modules', import.meta.url)))
const REPOSITORY = dirname(MODULES)

/** Installs packages of the repository and the program; answers the program's file. */
export function installProgram(folder: string, packages: readonly string[], program: string): string {
  for (const name of packages) {
    const to = join(folder, 'node_modules', name)
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(join(MODULES, name), to, 'junction')
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
  const file = join(folder, 'program.js')
  writeFileSync(file, program)
  return file
}

/** Builds the package that is published and puts it, with what it depends on, beside the program. */
export async function installMillrace(folder: string, program: string): Promise<string> {
  await promisify(execFile)(process.execPath, [join(REPOSITORY, 'scripts/package.ts')], { cwd: REPOSITORY })
  const built = join(REPOSITORY, 'dist/package')
  const manifest: { readonly dependencies: object } = JSON.parse(readFileSync(join(built, 'package.json'), 'utf8'))
  cpSync(built, join(folder, 'node_modules/millrace'), { recursive: true })
  return installProgram(folder, Object.keys(manifest.dependencies), program)
}
