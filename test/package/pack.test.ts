/**
 * The package as its users get it: built and packed from a copy of the sources, installed from the tarball into an empty
 * project, imported, compiled against and run. Nothing here sees the sources.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { DEPLOY, execForm, instruction } from '../examples/deployed.ts'
import { examplesOf, ROOT } from '../readme/blocks.ts'
import { copySources, pack, run } from './build.ts'
import { buildImage } from './image.ts'

interface Manifest {
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
}

interface InstalledManifest extends Manifest {
  readonly private?: boolean
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const manifest: Manifest = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
/** The renewal thread is a file to start as a thread, not a module to import. */
const IMPORTED = Object.keys(manifest.exports).filter((subpath) => subpath !== './renewal-thread')
const SUBPATHS = IMPORTED.map((subpath) => path.posix.join('millrace', subpath))
const QUIET = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
const TSC = path.join(ROOT, 'node_modules/typescript/bin/tsc')

const folder = mkdtempSync(path.join(tmpdir(), 'millrace-pack-'))
const copy = path.join(folder, 'copy')
const project = path.join(folder, 'project')
const installed = path.join(project, 'node_modules/millrace')
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))

before(() => {
  copySources(copy)
  // What an earlier build has left must not be shipped.
  mkdirSync(path.join(copy, 'dist/package/dist'), { recursive: true })
  writeFileSync(path.join(copy, 'dist/package/dist/left-over.js'), '')
  const tarball = pack(copy)
  mkdirSync(project)
  writeFileSync(path.join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm', ['install', tarball, ...QUIET], project)
  // The README's example brings a schema library of its own, and a consumer's compiler the types of Node.
  for (const name of ['zod', '@types/node', 'undici-types']) {
    const to = path.join(project, 'node_modules', name)
    if (!existsSync(to)) cpSync(path.join(ROOT, 'node_modules', name), to, { recursive: true })
  }
})

const installedManifest = (): InstalledManifest =>
  JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'))

test('the tarball holds what was built now, and no sources or tests', () => {
  assert.equal(installedManifest().private, undefined)
  for (const absent of ['src/index.ts', 'test', 'dist/left-over.js', 'dist/types/src/errors.test.d.ts']) {
    assert.equal(existsSync(path.join(installed, absent)), false, absent)
  }
  for (const file of ['README.md', 'CHANGELOG.md', 'LICENSE', 'dist/dashboard/index.html']) {
    assert.ok(existsSync(path.join(installed, file)), file)
  }
  const files = globSync('**/*', { cwd: installed, withFileTypes: true }).filter((entry) => entry.isFile())
  assert.ok(files.length <= 1_300, `${files.length} files`)
})

test('the hook of the package is one CommonJS file that records a prompt', () => {
  const hook = path.join(installed, 'dist/bin/millrace-hook.cjs')
  const prompt = { hook_event_name: 'UserPromptSubmit', session_id: 'a', prompt: 'hello' }
  writeFileSync(path.join(project, 'prompt.json'), JSON.stringify(prompt))
  const file = path.join(project, 'conversations.db')
  run('sh', ['-c', `HOME="$PWD" node "${hook}" --engine "sqlite:${file}" < prompt.json`], project)
  assert.ok(existsSync(file))
  assert.equal(existsSync(path.join(project, '.millrace/hook.log')), false)
  assert.ok(existsSync(path.join(project, 'node_modules/.bin/millrace-hook')))
})

test('every relative link of the packaged pages leads to a file of the package', () => {
  const broken = globSync('**/*.md', { cwd: installed }).flatMap((page) => {
    const links = readFileSync(path.join(installed, page), 'utf8').matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)
    const isBroken = (link: string): boolean => !existsSync(path.join(installed, path.dirname(page), link))
    return [...links].flatMap(([, link = '']) => (isBroken(link) ? [`${page}: ${link}`] : []))
  })
  assert.deepEqual(broken, [])
})

test('every export is there with its types, and every one can be imported', () => {
  for (const [subpath, conditions] of Object.entries(installedManifest().exports)) {
    assert.deepEqual(Object.keys(conditions), ['types', 'default'], subpath)
    for (const file of Object.values(conditions))
      assert.ok(existsSync(path.join(installed, file)), `${subpath}: ${file}`)
  }
  const source = `for (const name of ${JSON.stringify(SUBPATHS)}) {
    const names = Object.keys(await import(name))
    console.log(name, names.length > 0, import.meta.resolve(name).includes('/dist/'))
  }`
  writeFileSync(path.join(project, 'imports.js'), source)
  const expected = SUBPATHS.map((name) => `${name} true true\n`).join('')
  assert.equal(run('node', ['imports.js'], project), expected)
})

for (const resolution of ['nodenext', 'bundler']) {
  test(`types resolve under ${resolution}`, () => {
    const imports = SUBPATHS.map((name, index) => `import * as part${index} from '${name}'`)
    const parts = SUBPATHS.map((_, index) => `part${index}`)
    const uses = `import { defineJob, type JobView, open } from 'millrace'
      import { drain, openForTest } from 'millrace/testing'
      // Exported, so that declarations of a program can name every type from the package's entries.
      export const length = defineJob({ type: 'length', run: ({ job }) => job.id.length })
      export const mill = await open('memory:')
      export const worker = await mill.work([length])
      export const result: number = await mill.result(await mill.enqueue(length, null))
      export const jobs: readonly JobView[] = await mill.jobs()
      export const drained: number = (await drain((await openForTest()).mill, [length])).complete
      // @ts-expect-error a result has the type that its handler returns: were everything any, this would compile
      export const wrong: string = await mill.result(await mill.enqueue(length, null))
    `
    const at = path.join(project, resolution)
    mkdirSync(at)
    writeFileSync(path.join(at, 'consumer.ts'), [...imports, `export const parts = [${parts}]`, uses].join('\n'))
    const compilerOptions = {
      target: 'es2024',
      lib: ['es2024', 'esnext.disposable'],
      module: resolution === 'bundler' ? 'esnext' : resolution,
      moduleResolution: resolution,
      strict: true,
      declaration: true,
      emitDeclarationOnly: true,
      outDir: 'declared',
      types: ['node'],
    }
    writeFileSync(path.join(at, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['.'] }))
    assert.equal(run('node', [TSC, '-p', at], project), '')
  })
}

test("the README's examples print what it says", () => {
  const examples = examplesOf('README.md').filter(({ output }) => output !== null)
  assert.ok(examples.length >= 2)
  for (const [index, { code, output }] of examples.entries()) {
    writeFileSync(path.join(project, `example-${index}.ts`), code)
    assert.equal(run('node', [`example-${index}.ts`], project), output)
  }
})

test('the command of the package can be read by an old Node, which then says what is needed', () => {
  const launcher = readFileSync(path.join(installed, 'dist/bin/millrace.js'), 'utf8')
  assert.doesNotMatch(launcher, /^import\b(?!\()/m, 'a static import would be read before the version is checked')
  assert.match(launcher, /Millrace needs Node 24\.15 or newer/)
})

test('the command runs from the package', () => {
  const command = path.join(project, 'node_modules/.bin/millrace')
  assert.equal(run(command, ['--version'], project), `${manifest.version}\n`)
  const enqueued = run(command, ['enqueue', 'greet', '{}', '--json', '--engine', 'sqlite:./bin.db'], project)
  assert.match(enqueued, /"status":"enqueued"/)
})

/** The layers and packages that a process has loaded when it ends, without the hashes of their names. */
function loadedBy(args: readonly string[]): readonly string[] {
  const watch = `import { registerHooks } from 'node:module'
    const urls = []
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
    process.on('exit', () => process._rawDebug(JSON.stringify({ urls, builtins: process.moduleLoadList })))`
  writeFileSync(path.join(project, 'watch.mjs'), watch)
  const { status, stderr } = spawnSync(process.execPath, ['--import', './watch.mjs', ...args], {
    cwd: project,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  const { urls, builtins }: { urls: string[]; builtins: string[] } = JSON.parse(stderr)
  const files = urls
    .filter((url) => url.startsWith('file:') && url.includes('node_modules'))
    .map((url) => url.replace(/.*\/node_modules\/(?:millrace\/dist\/)?/, '').replace(/(?:-.{8})?\.js$/, ''))
  const costly = ['crypto', 'child_process', 'http', 'tls', 'worker_threads', 'internal/fs/streams']
  return [...files, ...costly.filter((name) => builtins.includes(`NativeModule ${name}`)).map((name) => `node:${name}`)]
}

const COMMAND = 'node_modules/millrace/dist/bin/millrace.js'
const COMMAND_LINE = ['bin/millrace', 'chunk-millrace', 'chunk-run', 'chunk-cli', 'chunk-mill', 'chunk-package']
const SQLITE = ['chunk-module', 'chunk-sqlite', 'chunk-rolldown-runtime']

test('a process that enqueues loads the mill and its engine, and neither a worker nor what is costly of Node', () => {
  const source = `import { defineJob, open } from 'millrace'
    const mill = await open('sqlite:./loading.db')
    await mill.enqueue(defineJob({ type: 'greet' }), {})
    await mill.close()`
  writeFileSync(path.join(project, 'enqueues.js'), source)
  assert.deepEqual(loadedBy(['enqueues.js']), ['index', 'chunk-mill', 'chunk-root', ...SQLITE])
})

test('importing the package loads no engine', () => {
  writeFileSync(path.join(project, 'only-imports.js'), `import 'millrace'`)
  assert.deepEqual(loadedBy(['only-imports.js']), ['index', 'chunk-mill', 'chunk-root'])
})

test('a command loads itself and what it uses', () => {
  const on = ['--engine', 'sqlite:./loading.db']
  assert.deepEqual(loadedBy([COMMAND, '--version']), [
    'bin/millrace',
    'chunk-millrace',
    'chunk-package-info',
    'chunk-package',
  ])
  assert.deepEqual(loadedBy([COMMAND, 'enqueue', 'greet', '{}', ...on]), [...COMMAND_LINE, 'chunk-enqueue', ...SQLITE])
  assert.deepEqual(loadedBy([COMMAND, 'stats', ...on]), [...COMMAND_LINE, 'chunk-stats', ...SQLITE])
})

test('the command finds presets, job tables and the commands of workloads in the package', () => {
  const command = path.join(project, 'node_modules/.bin/millrace')
  assert.match(
    run(command, ['help', 'start'], project),
    /--preset \[name\][^<]*choices:\s+"conversations", "embeddings"/,
  )
  const refused = (...args: readonly string[]): string =>
    spawnSync(process.execPath, [command, ...args], { cwd: project, encoding: 'utf8' }).stderr
  assert.match(refused('start', '--preset', 'escrow', '--engine', 'memory:'), /runs on Kafka/)
  assert.match(refused('start', '--preset', 'conversations', '--engine', 'memory:'), /kept in SQLite/)
  assert.match(refused('reap', '--tables', 'jobs', '--engine', 'memory:'), /give a postgres:\/\/ URL/)
  assert.match(refused('conversations', 'list', '--engine', 'sqlite:./none.db'), /no conversations in/)
  const install = run(command, ['hook', 'install', '--json'], project)
  assert.match(JSON.parse(install).command, /dist\/bin\/millrace-hook\.cjs$/)
})

test('the steps of the Dockerfile make a folder from which the command runs, and from which the jobs can be worked', () => {
  const context = path.join(folder, 'context')
  mkdirSync(context)
  const tarball = `millrace-${manifest.version}.tgz`
  cpSync(path.join(copy, 'dist', tarball), path.join(context, tarball))
  cpSync(path.join(DEPLOY, 'jobs.ts'), path.join(context, 'jobs.ts'))
  writeFileSync(path.join(context, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  run('npm', ['install', `./${tarball}`, ...QUIET, '--package-lock-only'], context)
  const image = buildImage(context, path.join(folder, 'image'), (command, cwd) => {
    // Only root can give a folder away.
    if (process.getuid?.() === 0 || !command.includes('chown')) run('sh', ['-c', command], cwd)
  })
  const [node = '', ...entry] = execForm(instruction('ENTRYPOINT'))
  assert.equal(run(node, [...entry, '--version'], image.folder), `${manifest.version}\n`)
  assert.deepEqual(image.environment, { NODE_ENV: 'production' })
  const engine = `sqlite:${path.join(image.folder, 'image.db')}`
  run(node, [...entry, 'enqueue', 'tidy', '{}', '--engine', engine], image.folder)
  const script = `node ${entry.join(' ')} ${execForm(instruction('CMD')).join(' ')} --engine ${engine}`
    .replaceAll('7420', '0')
    .replaceAll('0.0.0.0', '127.0.0.1')
  // Until the job is done, then stopped as Docker would.
  const worked = run(
    'sh',
    [
      '-c',
      `${script} > out & until grep -q 'Job completed' out; do kill -0 $! || exit 3; done; kill -TERM $!; wait $!; echo $?`,
    ],
    image.folder,
  )
  assert.equal(worked, '0\n')
})
