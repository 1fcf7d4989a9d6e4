/** BullMQ's Lua as the Redis engine takes it: texts by name, with a number of keys, that can stand inside a function. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'
import { BULL_SCRIPTS } from '../../src/engines/redis/bullmq.ts'
import { plainQueue } from './plain-queue.ts'

interface Text {
  readonly name: string
  readonly content: string
  readonly keys: number
}

const TEXTS: Readonly<Record<string, Text>> = createRequire(import.meta.url)('bullmq/dist/cjs/scripts')

/** Those that the engine calls, and those whose effects it counts on when other programs call them. */
const KEYS: Readonly<Record<string, number>> = {
  addDelayedJob: 6,
  addParentJob: 6,
  addPrioritizedJob: 9,
  addStandardJob: 9,
  extendLock: 2,
  extendLocks: 1,
  moveJobFromActiveToWait: 9,
  moveStalledJobsToWait: 9,
  moveToActive: 11,
  moveToDelayed: 11,
  moveToFinished: 14,
  promote: 9,
  releaseParentIfNoPendingDependencies: 2,
  removeJob: 2,
  reprocessJob: 9,
  retryJob: 11,
  updateJobScheduler: 12,
  updateProgress: 3,
}

test('every script that the engine calls is among those checked here', () => {
  const missing = Object.entries(BULL_SCRIPTS).filter(([name, keys]) => KEYS[name] !== keys)
  assert.deepEqual(missing, [])
})

for (const [name, keys] of Object.entries(KEYS))
  describe(name, () => {
    const text = TEXTS[name]

    test(`is a text with its name and ${keys} keys`, () => {
      assert.ok(text, `bullmq/dist/cjs/scripts has no ${name}`)
      assert.deepEqual(Object.keys(text).sort(), ['content', 'keys', 'name'])
      assert.equal(text.name, name)
      assert.equal(text.keys, keys)
      const used = [...text.content.matchAll(/\bKEYS\[(\d+)\]/g)].map(([, index]) => Number(index))
      assert.equal(Math.max(...used), keys)
    })

    test('stands inside a function that takes KEYS and ARGV', async (t) => {
      const { redis } = await plainQueue(t)
      const lua = `local function bull(KEYS, ARGV)\n${text?.content}\nend\nreturn type(bull)`
      assert.equal(await redis.eval(lua, 0), 'function')
    })
  })

/** As the engine takes the functions out of the scripts that they were pasted into. */
const FUNCTION = /^local function (\w+)[\s\S]*?^end\b/gm
const COMMENT = /--\[\[[\s\S]*?\]\]|--.*$/gm

/**
 * Scripts whose steps the engine takes in its own loops, with BullMQ's functions (enqueue-plain.ts, lua/claim.ts, complete.ts):
 * when one of these changes, read what is new and follow it there.
 */
const FOLLOWED: Readonly<Record<string, string>> = {
  addDelayedJob: 'eec68b98d54bb2ba',
  addParentJob: '84c7004b2d385848',
  addPrioritizedJob: 'dfa29e9c8724b5c2',
  moveToActive: '584f56d7608ff895',
  moveToFinished: '5a5199a7cf58d8d0',
}

/** The same of functions that those scripts call (lua/claim.ts, complete.ts). */
const FOLLOWED_FUNCTIONS: Readonly<Record<string, string>> = {
  addBaseMarkerIfNeeded: '6457649e39f11b7d',
  moveJobFromPrioritizedToActive: 'afb14f31539a1b19',
  prepareJobForProcessing: 'b153e4b27de9a42d',
}

function digestOf(text: string): string {
  const steps = text.replaceAll(COMMENT, '').replaceAll(/\s+/g, ' ').trim()
  return createHash('sha256').update(steps).digest('hex').slice(0, 16)
}

for (const [name, digest] of Object.entries(FOLLOWED))
  test(`the steps of ${name} are those that the engine follows`, () => {
    assert.equal(digestOf((TEXTS[name]?.content ?? '').replaceAll(FUNCTION, '')), digest)
  })

for (const [name, digest] of Object.entries(FOLLOWED_FUNCTIONS))
  test(`the steps of the function ${name} are those that the engine follows`, () => {
    const found = [...(TEXTS.moveToActive?.content ?? '').matchAll(FUNCTION)].find(([, found]) => found === name)
    assert.equal(digestOf(found?.[0] ?? ''), digest)
  })

test('a function that stands in several scripts is the same in all', () => {
  const texts = new Map<string, Set<string>>()
  for (const { content } of Object.values(TEXTS)) {
    for (const [text, name = ''] of content.matchAll(FUNCTION)) {
      texts.set(name, (texts.get(name) ?? new Set()).add(text.replaceAll(COMMENT, '').replaceAll(/\s+/g, ' ')))
    }
  }
  const differing = [...texts].filter(([, all]) => all.size > 1).map(([name]) => name)
  assert.deepEqual(differing, [])
  assert.ok(texts.size > 50, `only ${texts.size} functions were found`)
})

test('every function stands at the margin and ends there, none within another', () => {
  for (const { name, content } of Object.values(TEXTS)) {
    const found = [...content.matchAll(FUNCTION)]
    const begun = content.replaceAll(COMMENT, '').match(/\blocal function \w+/g) ?? []
    assert.equal(found.length, begun.length, name)
  }
})

test('a wrapped one called twice does what BullMQ does in two calls', async (t) => {
  const { redis, queue, key } = await plainQueue(t)
  await queue.addBulk([
    { name: 'a', data: 1 },
    { name: 'b', data: 2 },
    { name: 'c', data: 3 },
  ])
  const names = [
    'wait',
    'active',
    'prioritized',
    'events',
    'stalled',
    'limiter',
    'delayed',
    'paused',
    'meta',
    'pc',
    'marker',
  ]
  const lua = `local function bull(KEYS, ARGV)\n${TEXTS.moveToActive?.content}\nend
    local args = { ARGV[1], ARGV[2], cmsgpack.pack({ token = 'x', lockDuration = 5000, name = 'w' }) }
    return { bull(KEYS, args)[2], bull(KEYS, args)[2] }`
  const ids = await redis.eval(lua, names.length, ...names.map(key), key(''), Date.now())
  assert.deepEqual(ids, ['1', '2'])
  assert.deepEqual(await redis.lrange(key('active'), 0, -1), ['2', '1'])
  assert.deepEqual(await redis.lrange(key('wait'), 0, -1), ['3'])
  assert.equal(await redis.get(key('2:lock')), 'x')
})
