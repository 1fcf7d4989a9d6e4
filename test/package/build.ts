/** Building the package as `npm run package` does, in a copy, so that this working tree is neither changed nor in the way. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../readme/blocks.ts'

const BIN = path.join(ROOT, 'node_modules/.bin')
export const MODULES = path.join(ROOT, 'node_modules')

/** With this project's Node first, as `npm run` has it, and without the marks of the test runner or an outer npm. */
export function run(command: string, args: readonly string[], cwd: string): string {
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...env } = process.env
  const own = Object.entries(env).filter(([name]) => !/^npm_(?:config_(?:local_)?prefix|package|lifecycle)/.test(name))
  const result = spawnSync(command, args, {
    cwd,
    env: { ...Object.fromEntries(own), PATH: `${BIN}${path.delimiter}${process.env.PATH}` },
    encoding: 'utf8',
    // The build compiles and bundles everything, which a slow machine needs minutes for.
    timeout: 600_000,
  })
  const shown = `${command} ${args.join(' ')}\n${result.stdout}\n${result.stderr}\n${result.error ?? ''}`
  assert.equal(result.status, 0, shown)
  return result.stdout
}

/** What git knows or would add, as it is in the working tree now. */
export function copySources(to: string): void {
  mkdirSync(to)
  const listed = run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], ROOT).trim().split('\n')
  for (const file of listed) if (existsSync(path.join(ROOT, file))) cpSync(path.join(ROOT, file), path.join(to, file))
}

/** Packs the sources in the folder with the node_modules of this tree, and returns the tarball. */
export function pack(folder: string): string {
  symlinkSync(MODULES, path.join(folder, 'node_modules'), 'dir')
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(
    readFileSync(path.join(folder, 'package.json'), 'utf8'),
  )
  mkdirSync(path.join(folder, 'dist'), { recursive: true })
  // The first packages were packed from the root, by a script before `npm pack`.
  if (scripts.package !== undefined) run('npm', ['run', 'package'], folder)
  else run('npm', ['pack', '--pack-destination', 'dist', '--loglevel=error'], folder)
  const [tarball] = globSync('{dist/,}millrace-*.tgz', { cwd: folder })
  assert.ok(tarball, `no tarball in ${folder}`)
  return path.join(folder, tarball)
}
