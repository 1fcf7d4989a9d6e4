import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ENGINE_SCHEMES } from '../../src/engine/open.ts'
import { ERROR_CODES } from '../../src/errors.ts'
import { canMove, type Mover, STORED_STATES, type StoredState } from '../../src/job/states.ts'
import { BUILT_IN_RULES } from '../../workloads/conversations/sanitize/sanitize.ts'
import { ROOT } from './blocks.ts'

const read = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8')
const pages = globSync(['*.md', '{docs,src,workloads,dashboard,chaos,conformance,bench,examples}/**/*.md'], {
  cwd: ROOT,
})

/** The cells of a page's table rows, without heads and rules. */
function rowsOf(page: string, columns: number): readonly (readonly string[])[] {
  return read(page)
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.slice(2, -2).split(' | '))
    .filter((cells) => cells.length === columns)
}

const ACTORS = ['core', 'producer', 'operator'] as const
const isState = (text: string): text is StoredState => STORED_STATES.some((state) => state === text)
const isActor = (text: string): text is Mover => ACTORS.some((actor) => actor === text)

// B43..B51 X082
test('the table of transitions in the docs is the one in the code', () => {
  const documented = rowsOf('docs/state-machine.md', 4).filter(([from = '']) => isState(from))
  const inDocs = new Set(documented.map(([from, to, who]) => `${from} ${to} ${who}`))
  for (const [from = '', to = '', who = ''] of documented) {
    assert.ok(isState(from) && isState(to) && isActor(who), `${from} ${to} ${who}`)
  }
  for (const from of STORED_STATES) {
    for (const to of STORED_STATES) {
      for (const who of ACTORS) {
        // What the core may do is listed once, for the core; the others only add to it.
        const expected = canMove(from, to, who) && (who === 'core' || !canMove(from, to, 'core'))
        assert.equal(inDocs.has(`${from} ${to} ${who}`), expected, `${from} → ${to} by ${who}`)
      }
    }
  }
})

test('the page of errors has every code and every class, and no other', () => {
  const source = read('src/errors.ts')
  const documented = rowsOf('docs/errors.md', 3).filter(([code = '']) => code.startsWith('`ERR_'))
  assert.ok(ERROR_CODES.length > 30)
  assert.deepEqual(documented.map(([code = '']) => code.slice(1, -1)).toSorted(), ERROR_CODES.toSorted())
  const classes = [...source.matchAll(/^export class (\w+)/gm)].map(([, name]) => name ?? '')
  const named = new Set(documented.map(([, name = '']) => name.slice(1, -1)))
  assert.deepEqual(
    classes.filter((name) => !named.has(name)),
    [],
  )
})

test('the README lists the twelve guarantees and every engine that can be opened', () => {
  const guarantees = rowsOf('README.md', 2).flatMap(([id = '']) => (/^I\d+$/.test(id) ? [id] : []))
  assert.deepEqual(
    guarantees,
    Array.from({ length: 12 }, (_, index) => `I${index + 1}`),
  )
  const engines = rowsOf('README.md', 3).flatMap(([, url = '']) => /^`(\w+):/.exec(url)?.[1] ?? [])
  // `postgresql:` is another spelling that drivers take too; `rediss:` and `kafkas:` are the same engines with TLS, and
  // `redis+cluster:` and `redis+sentinel:` that of Redis with several servers.
  const others = ['postgresql', 'rediss', 'kafkas']
  const schemes = ENGINE_SCHEMES.filter((scheme) => !others.includes(scheme) && !scheme.includes('+'))
  assert.deepEqual(engines.toSorted(), schemes.toSorted())
})

test("the README's rates are those of the page of benchmarks", () => {
  const sections = read('docs/benchmarks.md').matchAll(/^### Drain\n([\s\S]*?)^##/gm)
  const drained = [...sections].flatMap(([, table = '']) => [...table.matchAll(/\| ([\d\s]+)\/s/g)])
  const measured = new Set(drained.map(([, rate = '']) => rate.replace(/\D/g, '')))
  const rates = rowsOf('README.md', 3).flatMap((cells) => cells.join(' ').match(/[\d,]+(?=\/s)/g) ?? [])
  assert.ok(rates.length >= 6)
  assert.deepEqual(
    rates.filter((rate) => !measured.has(rate.replace(/\D/g, ''))),
    [],
  )
})

test('the README has every command of the command line', () => {
  const commands = [...read('docs/cli.md').matchAll(/^## millrace (\w+)$/gm)].map(([, name]) => name)
  const listed = rowsOf('README.md', 2).flatMap(([names = '']) =>
    [...names.matchAll(/`(\w+)/g)].map(([, name]) => name),
  )
  assert.deepEqual(listed.toSorted(), commands.toSorted())
})

test('the page of the conversation pipeline has every category and replacement of the rules', () => {
  const rows = rowsOf('docs/conversations.md', 3).filter(([, , stands = '']) => stands.includes('`['))
  const listed = rows.flatMap(([category = '', , stands = '']) =>
    [...stands.matchAll(/`(\[\w+\])`/g)].map(([, replacement]) => `${category} ${replacement}`),
  )
  const rules = BUILT_IN_RULES.map(({ category, replacement }) => `\`${category}\` ${replacement}`)
  assert.deepEqual(new Set(listed), new Set(rules))
})

test('links between pages lead somewhere', () => {
  assert.ok(pages.length > 20)
  const broken = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(path.join(ROOT, path.dirname(page), target)))
      .map((target) => `${page}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

/** As GitHub makes it from a heading. */
function anchorOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}

test('links to a part of a page lead to one of its headings', () => {
  const broken = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)/g)].flatMap(
      ([, target = '', anchor = '']) => {
        const file = target === '' ? page : path.join(path.dirname(page), target)
        if (!file.endsWith('.md')) return []
        const headings = [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))
        return headings.includes(anchor) ? [] : [`${page}: ${target}#${anchor}`]
      },
    ),
  )
  assert.deepEqual(broken, [])
})

test('pages install what Millrace was tested with, and from where it can be had', () => {
  const { version, private: isUnpublished } = JSON.parse(read('package.json'))
  const lines = pages.flatMap((page) =>
    read(page)
      .split('\n')
      .flatMap((line) => (/npm (?:i|install|run)\b/.test(line) ? [`${page}: ${line}`] : [])),
  )
  // A newer major of BullMQ has other scripts, and is refused.
  assert.deepEqual(
    lines.filter((line) => /npm (?:i|install)\b[^`]*\bbullmq(?!@6)/.test(line)),
    [],
  )
  // While it is private it cannot be installed by its name.
  if (isUnpublished === true)
    assert.deepEqual(
      lines.filter((line) => /npm (?:i|install) millrace\b(?!-)/.test(line)),
      [],
    )
  // Without -s npm prints lines of its own, which no reader of --json expects.
  assert.deepEqual(
    lines.filter((line) => /npm run millrace --/.test(line)),
    [],
  )
  const tarballs = lines.flatMap((line) => line.match(/millrace-\d[\w.-]*\.tgz/g) ?? [])
  assert.ok(tarballs.length > 0, 'no page says how to install the package')
  assert.deepEqual(
    tarballs.filter((name) => name !== `millrace-${version}.tgz`),
    [],
  )
})

test('files that the docs name exist', () => {
  const named = [
    'README.md',
    'docs/architecture.md',
    'docs/state-machine.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
  ].flatMap((page) =>
    [...read(page).matchAll(/`((?:src|test|conformance|docs|scripts|bench|chaos|examples|workloads)\/[\w./-]+)`/g)].map(
      ([, file = '']) => ({ page, file }),
    ),
  )
  assert.ok(named.length > 20)
  const missing = named.filter(({ file }) => !existsSync(path.join(ROOT, file)))
  assert.deepEqual(missing, [])
})

test('a decision is short, numbered without gaps, and states context, decision and cost', () => {
  const decisions = globSync('docs/decisions/*.md', { cwd: ROOT }).toSorted()
  for (const [index, file] of decisions.entries()) {
    const text = read(file)
    assert.match(path.basename(file), new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z0-9-]+\\.md$`))
    assert.match(text, new RegExp(`^# ${index + 1}\\. `))
    for (const part of ['Context', 'Decision', 'Cost']) assert.ok(text.includes(`**${part}.**`), `${file}: ${part}`)
    assert.ok(text.trimEnd().split('\n').length < 25, file)
  }
})

test('no page promises more than at least once', () => {
  // The ledger quotes the source documents; the matrix has cases in which nothing crashes.
  const quoting = new Set(['test/requirements.md', 'docs/engines.md'])
  const bold = pages.filter((page) => !quoting.has(page) && /exactly[ -]once/i.test(read(page)))
  assert.deepEqual(bold, [])
})
