import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { blank } from './blank.ts'
import { type Import, importsOf, layerOf } from './imports.ts'
import { isTest, ROOT, type SourceFile, sourceFiles } from './source.ts'

/** What the package is made of, for those who stand on top of it. */
const PUBLIC = [
  'client',
  'worker',
  'keeper',
  'desk',
  'observe',
  'explain',
  'engine',
  'job',
  'time',
  'errors.ts',
  'events.ts',
]

/** What each layer may import besides itself. A layer that is not here fails the law, so that a new one is thought about. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'errors.ts': [],
  time: ['errors.ts'],
  job: ['time', 'errors.ts'],
  engine: ['job', 'time', 'errors.ts'],
  'events.ts': ['engine', 'job'],
  // Judges facts that engines supply; it knows no engine.
  doctor: ['engine', 'job', 'time', 'errors.ts'],
  'engines/*': ['engine', 'job', 'time', 'errors.ts', 'doctor'],
  // Only listens and asks: it knows the events, what a job is and the port, nobody's insides.
  observe: ['events.ts', 'engine', 'job', 'time', 'errors.ts'],
  keeper: ['engine', 'job', 'time', 'errors.ts', 'events.ts'],
  worker: ['keeper', 'engine', 'job', 'time', 'errors.ts', 'events.ts'],
  desk: ['engine', 'job', 'time', 'errors.ts', 'events.ts'],
  // Reads through the port and words what it finds; it asks within the time that observing may take.
  explain: ['observe', 'engine', 'job', 'time', 'errors.ts'],
  client: ['worker', 'keeper', 'observe', 'engine', 'job', 'time', 'errors.ts', 'events.ts'],
  // Between two engines, whichever they are: it knows the port, and how a leader is elected.
  outbox: ['worker', 'keeper', 'engine', 'job', 'time', 'errors.ts'],
  testing: ['client', 'worker', 'engine', 'job', 'time', 'errors.ts', 'events.ts'],
  'index.ts': PUBLIC,
  http: PUBLIC,
  cli: ['http', ...PUBLIC],
}

/** Outside src/: what a folder may not import. */
const FORBIDDEN: Readonly<Record<string, readonly string[]>> = {
  conformance: ['cli', 'http', 'workloads', 'bench', 'test', 'examples', 'scripts'],
  proof: ['cli', 'http', 'workloads', 'bench', 'test', 'examples', 'scripts'],
  workloads: ['cli', 'bench', 'test', 'examples', 'scripts', 'conformance', 'engines/sqlite'],
}

/** The one place that names engines, and only to load them when a URL asks for them. */
const ENGINES_LOADED_IN = 'src/engine/open.ts'

/** The types of commands and presets, for the workloads that have some. */
const CLI_TYPES = ['src/cli/extensions.ts']

/** The one place that imports a module whose name is not written there: the user's own job modules. */
const MODULES_LOADED_IN = 'src/cli/modules.ts'

/** What the engines of SQL databases share is in `engines/sql`. */
const SQL_ENGINES = ['engines/sqlite', 'engines/postgres']

const folders = ['src', 'conformance', 'proof', 'workloads']
const files = sourceFiles(folders, { tests: false })
const imports = files.flatMap(importsOf)
const inProject = (to: string): boolean => /\.[jt]s$/.test(to) && !to.startsWith('node:')
const shown = ({ from, to }: Import): string => `${from} imports ${to}`

function isLawful({ from, to, kind }: Import): boolean {
  const [fromLayer, toLayer] = [layerOf(from), layerOf(to)]
  if (fromLayer === toLayer) return true
  // The tables of workloads stand in the files and databases of the SQL engines, and are opened and written as theirs are.
  if (from.startsWith('workloads/database/') && ['engines/sql', ...SQL_ENGINES].includes(toLayer)) return true
  // The conversation pipeline keeps its tables beside job_queue, and its hook writes both without opening a mill.
  if (from.startsWith('workloads/conversations/') && ['engines/sql', 'engines/sqlite'].includes(toLayer)) return true
  if (toLayer === 'engines/sql') return SQL_ENGINES.includes(fromLayer)
  if (kind === 'dynamic' && toLayer.startsWith('engines/')) return from === ENGINES_LOADED_IN
  // The harnesses of our own engines are not shipped, and some need a server.
  if (from.startsWith('conformance/engines/') && to.startsWith('test/servers/')) return true
  // A workload may say what it is to the command line, which loads it by bin/extensions.ts.
  if (fromLayer === 'workloads' && CLI_TYPES.includes(to)) return true
  if (!from.startsWith('src/')) return !(FORBIDDEN[fromLayer] ?? []).includes(toLayer)
  const allowed = ALLOWED[fromLayer.startsWith('engines/') ? 'engines/*' : fromLayer] ?? []
  return to.startsWith('src/') && allowed.includes(toLayer)
}

test('the graph was really walked', () => {
  assert.ok(files.length > 60 && imports.length > 200, `${files.length} files, ${imports.length} imports`)
  const known = { from: 'src/client/mill.ts', to: 'src/engine/open.ts', kind: 'static' }
  assert.ok(imports.some((found) => shown(found) === shown({ ...known, kind: 'static' })))
  const missing = imports.filter(({ to }) => inProject(to) && !existsSync(path.join(ROOT, to)))
  assert.deepEqual(missing.map(shown), [])
})

test('every layer imports only what stands below it', () => {
  const broken = imports.filter((found) => inProject(found.to) && !isLawful(found))
  assert.deepEqual(broken.map(shown), [])
})

test('the law itself refuses what it should', () => {
  const unlawful: readonly (readonly [string, string])[] = [
    ['src/job/policy.ts', 'src/engine/engine.ts'],
    ['src/engine/engine.ts', 'src/worker/worker.ts'],
    ['src/engines/sqlite/engine.ts', 'src/engines/memory/engine.ts'],
    ['src/engines/redis/engine.ts', 'src/engines/sql/dead-letters.ts'],
    ['src/engines/sqlite/engine.ts', 'src/client/mill.ts'],
    ['src/client/mill.ts', 'src/engines/sqlite/engine.ts'],
    ['src/worker/worker.ts', 'src/engines/memory/engine.ts'],
    ['src/index.ts', 'src/cli/main.ts'],
    ['src/client/mill.ts', 'conformance/index.ts'],
    ['conformance/case.ts', 'src/cli/main.ts'],
    ['src/new-layer/a.ts', 'src/job/job.ts'],
    ['src/cli/program.ts', 'workloads/escrow/preset.ts'],
    ['src/cli/program.ts', 'bin/extensions.ts'],
  ]
  for (const [from, to] of unlawful) assert.equal(isLawful({ from, to, kind: 'static' }), false, `${from} → ${to}`)
  assert.equal(isLawful({ from: ENGINES_LOADED_IN, to: 'src/engines/memory/module.ts', kind: 'static' }), false)
  assert.equal(isLawful({ from: ENGINES_LOADED_IN, to: 'src/engines/memory/module.ts', kind: 'dynamic' }), true)
  assert.equal(isLawful({ from: 'src/client/mill.ts', to: 'src/engines/memory/module.ts', kind: 'dynamic' }), false)
})

test('what workloads share knows none of them', () => {
  const shared = ['workloads/database/', 'workloads/language-models/']
  const isShared = (file: string): boolean => shared.some((folder) => file.startsWith(folder))
  const broken = imports.filter(({ from, to }) => isShared(from) && to.startsWith('workloads/') && !isShared(to))
  assert.deepEqual(broken.map(shown), [])
  const aside = imports.filter(({ from, to }) => {
    const [one, other] = [from, to].map((file) => file.split('/')[1])
    return from.startsWith('workloads/') && to.startsWith('workloads/conversations/') && one !== other
  })
  assert.deepEqual(aside.map(shown), [], 'what another workload needs of conversations belongs into a shared folder')
})

test('src loads no workload, not even lazily', () => {
  assert.equal(isLawful({ from: 'src/cli/extensions.ts', to: 'workloads/escrow/preset.ts', kind: 'dynamic' }), false)
  const computed = sourceFiles(['src'], { tests: false }).flatMap(({ path: file, code }) =>
    /\bimport\(\s*[^'"\s]/.test(code) ? [file] : [],
  )
  assert.deepEqual(computed, [MODULES_LOADED_IN], 'write the name of the module, so that the laws can see it')
})

test('the doctor is loaded only when an engine is diagnosed', () => {
  const isFacts = (file: string): boolean => /^src\/engines\/\w+\/(?:\w+-)?facts\.ts$/.test(file)
  const eager = imports.filter(({ from, to, kind }) => {
    if (kind === 'dynamic' || !from.startsWith('src/') || isFacts(from) || layerOf(from) === 'doctor') return false
    return layerOf(to) === 'doctor' || isFacts(to)
  })
  assert.deepEqual(eager.map(shown), [])
  assert.ok(imports.some(({ from, to }) => isFacts(from) && layerOf(to) === 'doctor'))
})

test('nothing imports a test', () => {
  assert.deepEqual(imports.filter(({ to }) => isTest(to)).map(shown), [])
})

/** Each engine's client, and where alone it may be imported. */
const CLIENTS: Readonly<Record<string, string>> = {
  'node:sqlite': 'src/engines/sqlite/',
  'better-sqlite3': 'src/engines/sqlite/',
  pg: 'src/engines/postgres/',
  ioredis: 'src/engines/redis/',
  bullmq: 'src/engines/redis/',
  '@platformatic/kafka': 'src/engines/kafka/',
}

test("an engine's client is imported in that engine's folder only", () => {
  const strays = imports.filter(({ from, to }) => {
    const home = CLIENTS[to]
    return from.startsWith('src/') && home !== undefined && !from.startsWith(home)
  })
  assert.deepEqual(strays.map(shown), [])
  assert.ok(imports.some(({ from, to }) => from.startsWith('src/engines/sqlite/') && to === 'node:sqlite'))
})

test('imports are found in every form', () => {
  const text = [
    "import 'a'",
    "import b from 'b'",
    "import type { C } from './c.ts'",
    "import {\n  d,\n} from '../d.ts'",
    "export { e } from 'e'",
    "export * from './f.ts'",
    "const g = await import('./g.ts')",
    "// import 'no'",
    "export const no = 'no'",
    'const text = "import \'no\'"',
  ].join('\n')
  const file: SourceFile = { path: 'src/x/y.ts', text, code: blank(text) }
  assert.deepEqual(
    importsOf(file).map(({ to }) => to),
    ['a', 'b', 'src/x/c.ts', 'src/d.ts', 'e', 'src/x/f.ts', 'src/x/g.ts'],
  )
})
