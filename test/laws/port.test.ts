/** The port stays small, and its guide covers all of it: counted from the source of its types. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROOT } from './source.ts'

/**
 * Lower it when a method goes. The aim is 35. `workers` was added so that health sees the workers of Kafka, `append` and
 * `read` so that jobs keep what their handlers say, `successors` so that a flow can be shown whole, `search`
 * so that stores search by their indexes, `causes` so that these count dead letters without reading whole jobs.
 */
const METHODS_MAX = 43
/** `slots` was added for `concurrency` over all workers. */
const FLAGS_MAX = 16

interface Declared {
  readonly methods: readonly string[]
  readonly properties: readonly string[]
  /** Names of all types that it mentions. */
  readonly types: readonly string[]
}

/** Interfaces of src/engine by name. The formatter indents their members by two spaces. */
function readInterfaces(): ReadonlyMap<string, Declared> {
  const found = new Map<string, Declared>()
  for (const file of globSync('src/engine/*.ts', { cwd: ROOT })) {
    const text = readFileSync(path.join(ROOT, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
    for (const [, name = '', extended = '', body = ''] of text.matchAll(
      /^export interface (\w+)([^{\n]*)\{\n([\s\S]*?)^\}/gm,
    )) {
      const namesOf = (pattern: RegExp): string[] => [...body.matchAll(pattern)].map(([, member = '']) => member)
      found.set(name, {
        methods: namesOf(/^ {2}(\w+)\??\(/gm),
        properties: namesOf(/^ {2}readonly (\w+)\??:/gm),
        types: `${extended} ${body}`.match(/\b[A-Z]\w+/g) ?? [],
      })
    }
  }
  return found
}

const interfaces = readInterfaces()

/** Every method that an engine implements: its own, its facets' and its consumers'. */
function methodsFrom(name: string, met: Set<string>): readonly string[] {
  const declared = interfaces.get(name)
  if (declared === undefined || met.has(name)) return []
  met.add(name)
  const own = declared.methods.map((method) => `${name}.${method}`)
  return [...own, ...declared.types.flatMap((type) => methodsFrom(type, met))]
}

const methods = methodsFrom('Engine', new Set())
const flags = interfaces.get('Capabilities')?.properties ?? []

test('the port has at most as many methods and flags as it had', () => {
  assert.ok(methods.length > 25 && flags.length > 10, 'methods and flags are found')
  assert.ok(methods.length <= METHODS_MAX, `${methods.length} methods: ${methods.join(', ')}`)
  assert.ok(flags.length <= FLAGS_MAX, `${flags.length} flags: ${flags.join(', ')}`)
})

test('docs/writing-an-engine.md covers every method and every flag of the port', () => {
  const guide = readFileSync(path.join(ROOT, 'docs/writing-an-engine.md'), 'utf8')
  const names = [...methods.map((method) => method.split('.')[1] ?? ''), ...flags]
  assert.deepEqual(
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(guide)),
    [],
  )
})
