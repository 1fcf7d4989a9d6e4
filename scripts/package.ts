/**
 * Builds what npm publishes into dist/package: `npm run package` (`--pack` also writes the tarball to dist/).
 *
 * The package is staged rather than packed from the root, so that package.json can point at the sources while we work on
 * them and at the built files once they are installed. Code is bundled in layers, which load faster than hundreds of small
 * modules; declarations stay one file per module.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { directBuiltins } from './builtins.ts'
import { buildDashboard } from './dashboard.ts'
import { buildHook } from './hook.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const STAGE = path.join(ROOT, 'dist/package')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

const manifest: Manifest = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))

/** Modules that are started as a thread or process by their file name, which is looked for beside the file that starts them. */
const STARTED_BY_FILE = {
  'conformance/worker': 'conformance/process/worker.ts',
  'conformance/holder': 'conformance/process/holder.ts',
  'conformance/producer': 'conformance/process/producer.ts',
}

/** Built apart, into one CommonJS file. */
const HOOK = 'millrace-hook'

/**
 * The parser of command lines is bundled: it imports modules of Node whole, of which a command needs none, and that takes
 * as long as half of Node's own start. Its license is packed beside it.
 */
const BUNDLED = 'commander'

/** `.` is `index`, `./workloads/escrow` is `workloads/escrow`; an export with files of its own beside it is a folder. */
function outputName(subpath: string): string {
  const name = subpath === '.' ? 'index' : subpath.slice(2)
  return name === 'conformance' ? 'conformance/index' : name
}

function entries(): Record<string, string> {
  const exported = Object.entries(manifest.exports).map(([subpath, source]) => [outputName(subpath), source])
  const commands = Object.entries(manifest.bin).flatMap(([name, source]) =>
    name === HOOK ? [] : [[`bin/${name}`, source]],
  )
  const all = [...exported, ...commands, ...Object.entries(STARTED_BY_FILE)]
  return Object.fromEntries(all.map(([name = '', source = '']) => [name, path.join(ROOT, source)]))
}

/**
 * Each is one file with the modules that it names and everything that they import, except what is in a layer above it.
 * The rest is bundled per export with shared chunks, of which a process would otherwise load dozens: finding and opening
 * one takes as long as compiling it.
 */
const LAYERS: readonly (readonly [name: string, modules: RegExp])[] = [
  ['package', /^src\/engine\/package-info\.ts$/],
  // What the engines and everything above the port share belongs here too, so that none of them loads another for it.
  [
    'mill',
    /^src\/(?:client\/(?:mill|on-use)|worker\/(?:context|early-signals)|job\/[^/]+|engine\/(?:counts|dead-letters|outcome|retention))\.ts$/,
  ],
  ['sqlite', /^src\/engines\/sqlite\/module\.ts$/],
  ['root', /^src\/index\.ts$/],
  ['worker', /^src\/worker\/worker\.ts$/],
  ['cli', /^(?:src\/cli\/(?:program|arguments|format|modules)|bin\/extensions)\.ts$/],
]

const layers = LAYERS.map(([name, modules], index) => ({
  name,
  test: (id: string): boolean => modules.test(path.relative(ROOT, id).replaceAll(path.sep, '/')),
  priority: LAYERS.length - index,
}))

async function bundle(): Promise<void> {
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: entries(),
    external: (id) => !id.startsWith('.') && !path.isAbsolute(id) && id !== BUNDLED,
    platform: 'node',
    preserveEntrySignatures: 'allow-extension',
    plugins: [directBuiltins],
    logLevel: 'warn',
  })
  await build.write({
    dir: path.join(STAGE, 'dist'),
    format: 'esm',
    entryFileNames: '[name].js',
    // Beside the entries, so that a file started by its name is found from a shared chunk too.
    chunkFileNames: 'chunk-[name]-[hash].js',
    codeSplitting: { groups: layers },
  })
  await build.close()
}

/** Declarations of every module that an export reaches, and of no other. */
function declare(): void {
  const config = path.join(ROOT, 'dist/tsconfig.package.json')
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rewriteRelativeImportExtensions: true,
    rootDir: ROOT,
    outDir: path.join(STAGE, 'dist/types'),
  }
  const files = Object.values(manifest.exports).map((source) => path.join(ROOT, source))
  writeFileSync(
    config,
    JSON.stringify({ extends: path.join(ROOT, 'tsconfig.json'), compilerOptions, files, include: [] }),
  )
  run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config])
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: STAGE, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  return stdout
}

/** README.md and every file that it, or a page it leads to, links to, so that no link of an installed package is broken. */
function linkedFiles(): Set<string> {
  const found = new Set<string>()
  const waiting = ['README.md', 'CHANGELOG.md', 'LICENSE']
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue
    if (statSync(path.join(ROOT, file)).isDirectory()) {
      waiting.push(...globSync(`${file}/**/*.*`, { cwd: ROOT, exclude: (name) => /node_modules|\.db/.test(name) }))
      continue
    }
    found.add(file)
    if (file.endsWith('.md')) waiting.push(...linksOf(file))
  }
  return found
}

function linksOf(page: string): string[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8')
  return [...text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)]
    .map(([, link = '']) => path.posix.normalize(path.posix.join(path.posix.dirname(page), link)).replace(/\/$/, ''))
    .filter((link) => existsSync(path.join(ROOT, link)))
}

/** The package.json of the package: it points at the built files, and has nothing that only this repository needs. */
export function publishedManifest() {
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _devDependencies,
    // A test chain: only this repository needs it.
    optionalDependencies: _optionalDependencies,
    overrides: _overrides,
    allowScripts: _allowScripts,
    ...published
  } = manifest
  const built = Object.entries(manifest.exports).map(([subpath, source]) => {
    const types = `./dist/types/${source.replace(/^\.\//, '').replace(/\.ts$/, '.d.ts')}`
    return [subpath, { types, default: `./dist/${outputName(subpath)}.js` }]
  })
  const bin = Object.fromEntries(
    Object.keys(manifest.bin).map((name) => [name, `./dist/bin/${name}.${name === HOOK ? 'cjs' : 'js'}`]),
  )
  const dependencies = Object.fromEntries(Object.entries(manifest.dependencies).filter(([name]) => name !== BUNDLED))
  return { ...published, dependencies, bin, exports: Object.fromEntries(built) }
}

export async function stagePackage(): Promise<string> {
  rmSync(STAGE, { recursive: true, force: true })
  mkdirSync(path.join(STAGE, 'dist'), { recursive: true })
  await bundle()
  await buildHook(path.join(STAGE, `dist/bin/${HOOK}.cjs`))
  declare()
  cpSync(path.join(ROOT, 'node_modules', BUNDLED, 'LICENSE'), path.join(STAGE, `dist/bin/${BUNDLED}.LICENSE`))
  cpSync(await buildDashboard(), path.join(STAGE, 'dist/dashboard'), { recursive: true })
  for (const file of linkedFiles()) cpSync(path.join(ROOT, file), path.join(STAGE, file), { recursive: true })
  writeFileSync(path.join(STAGE, 'package.json'), `${JSON.stringify(publishedManifest(), null, 2)}\n`)
  return STAGE
}

if (import.meta.main) {
  const folder = await stagePackage()
  const count = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile()).length
  console.log(`Staged ${manifest.name} ${manifest.version} in ${path.relative(ROOT, folder)}: ${count} files`)
  if (process.argv.includes('--pack')) {
    const tarball = run('npm', ['pack', '--pack-destination', '..', '--loglevel=error']).trim()
    console.log(`Packed dist/${tarball}`)
  }
}
