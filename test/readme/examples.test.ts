import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { type Example, examplesIn, examplesOf, ROOT } from './blocks.ts'

/** Every page that a reader can copy from. */
const PAGES = globSync(['*.md', 'docs/*.md', 'examples/**/*.md', 'src/engines/*/README.md', 'workloads/*/README.md'], {
  cwd: ROOT,
}).toSorted()
const read = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8')
/** For what never ends: the compiler, and the example that runs every case, take long on a slow machine. */
const TIMEOUT_MS = 600_000

/** Inside the package, so that `import 'millrace'` finds the package itself, as it would in a user's node_modules. */
async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const parent = path.join(ROOT, '.cache')
  await mkdir(parent, { recursive: true })
  const folder = await mkdtemp(path.join(parent, 'readme-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function run(
  command: string,
  args: readonly string[],
  cwd: string,
): Promise<{ code: number; out: string; err: string }> {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT_MS })
  const closed = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
  const [code, out, err] = await Promise.all([closed, text(child.stdout), text(child.stderr)])
  return { code, out, err }
}

const all = PAGES.flatMap(examplesOf)
const runnable = all.filter(({ output }) => output !== null)

for (const example of runnable) {
  test(`${example.page}:${example.line} prints what the page says`, async () => {
    const { code, out, err } = await inFolder(async (folder) => {
      await writeFile(path.join(folder, 'example.ts'), example.code)
      return run(process.execPath, ['example.ts'], folder)
    })
    assert.equal(err, '')
    assert.equal(out, example.output)
    assert.equal(code, 0)
  })
}

test('every example of the pages compiles under the strict rules of this project', async () => {
  const result = await inFolder(async (folder) => {
    await Promise.all(
      all.map(({ code }, index) => writeFile(path.join(folder, `example-${index}.ts`), withPrelude(code))),
    )
    const tsconfig = { extends: '../../tsconfig.json', include: ['.'], compilerOptions: { noUnusedLocals: false } }
    await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
    return run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], ROOT)
  })
  assert.equal(result.out + result.err, '')
})

/** The file is a module even if its only import is taken away, and fragments may rely on `open`. */
function withPrelude(code: string): string {
  return /\bopen\b.*from 'millrace'/.test(code) ? code : `import { open } from 'millrace'\n${code}`
}

test('TypeScript on a page is a whole program, so that it is compiled; a fragment is marked as js', () => {
  const blocksOf = (page: string): number => read(page).match(/^ *```ts$/gm)?.length ?? 0
  // One of CONTRIBUTING.md is a file of this repository and imports its neighbours.
  const pages = PAGES.filter((page) => page !== 'CONTRIBUTING.md' && blocksOf(page) !== examplesOf(page).length)
  assert.deepEqual(pages, [])
})

test('the pages have the examples they should', () => {
  assert.equal(runnable.filter(({ page }) => page === 'README.md').length, 2)
  const least = { 'docs/guide.md': 3, 'docs/jobs.md': 6, 'docs/retries.md': 2, 'docs/writing-an-engine.md': 1 }
  for (const [name, count] of Object.entries(least)) {
    assert.ok(runnable.filter(({ page }) => page === name).length >= count, name)
  }
})

test('blocks are found with their output and their line', () => {
  const page = ['# x', '```ts', "import 'a'", '```', 'text', '```text', 'out', '```', '```ts', 'fragment()', '```', '']
  const expected: Example = { page: 'p', line: 2, code: "import 'a'\n", output: 'out\n' }
  assert.deepEqual(examplesIn('p', page.join('\n')), [expected])
})
