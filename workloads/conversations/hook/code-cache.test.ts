/** The cache of the built hook: whatever is wrong with it, the message is stored and nobody is told. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, beforeEach, test } from 'node:test'
import { hookRig } from '../../../test/fixtures/hook.ts'

const RAW = 'john.smith@example.com'
const rig = await hookRig()
const folder = path.join(rig.home, '.millrace')
const database = rig.next()

const caches = () => readdirSync(folder).filter((name) => name.startsWith('hook-'))
const cacheFile = () => path.join(folder, caches()[0] ?? 'none')
/** Another number: the file was made anew. */
const inode = () => statSync(cacheFile()).ino

let stored = 0
async function prompt(command?: readonly string[]): Promise<void> {
  const env = { MILLRACE_ENGINE: `sqlite:${database}` }
  const run = await rig.prompt(`write to ${RAW}`, { env, ...(command && { command }) })
  assert.deepEqual([run.code, run.stdout, run.stderr], [0, '', ''])
  stored += 1
  assert.equal(count(), stored)
}

function count(): number {
  const handle = new DatabaseSync(database)
  try {
    return Number(handle.prepare('SELECT count(*) AS count FROM messages').get()?.count)
  } finally {
    handle.close()
  }
}

before(async () => {
  await prompt()
  assert.equal(existsSync(folder), false, 'a run that makes the tables is not the usual one')
})

beforeEach(async () => {
  rmSync(folder, { recursive: true, force: true })
  await prompt()
})

test('the first message makes it, for its owner only and without any of the message; the next ones use it', async () => {
  assert.equal(caches().length, 1)
  assert.match(caches()[0] ?? '', /^hook-[\da-f]{16}-v\d+\.\d+\.\d+-\w+\.cache$/)
  assert.deepEqual([statSync(cacheFile()).mode & 0o777, statSync(folder).mode & 0o777], [0o600, 0o700])
  assert.deepEqual(rig.filesWith(RAW), [])
  const made = inode()
  await prompt()
  assert.equal(inode(), made)
})

const whole = () => readFileSync(cacheFile())
const damages: readonly (readonly [string, () => Uint8Array])[] = [
  ['one bit in the first copy', () => whole().fill(whole().readUInt8(5_000) ^ 1, 5_000, 5_001)],
  ['one bit at the end', () => whole().fill(whole().readUInt8(whole().length - 1) ^ 1, whole().length - 1)],
  ['a lost end', () => whole().subarray(0, -4_096)],
  ['a lost second copy', () => whole().subarray(0, whole().length / 2)],
  ['a lost content', () => new Uint8Array(0)],
  ['two bytes', () => Buffer.from('xx')],
  ['zeros', () => Buffer.alloc(whole().length)],
  ['another text, twice', () => Buffer.from('not a cache of V8 '.repeat(10_000))],
  // V8 checks its own version, flags and the length of the source in the first bytes.
  [
    'another version of V8',
    () =>
      whole()
        .fill(7, 4, 8)
        .fill(7, whole().length / 2 + 4, whole().length / 2 + 8),
  ],
]
for (const [what, damaged] of damages) {
  test(`with ${what} the code is compiled anew, and the cache is made anew`, async () => {
    const { length } = whole()
    writeFileSync(cacheFile(), damaged())
    const before = inode()
    await prompt()
    assert.notEqual(inode(), before)
    assert.ok(Math.abs(whole().length - length) < length / 5)
    const made = inode()
    await prompt()
    assert.equal(inode(), made)
  })
}

test('a pipe in its place is not waited for, and is replaced', { skip: process.platform === 'win32' }, async () => {
  const file = cacheFile()
  rmSync(file)
  execFileSync('mkfifo', [file])
  await prompt()
  assert.equal(statSync(file).isFile(), true)
})

test('flags of V8 that do not fit make it anew', async () => {
  const before = inode()
  await prompt([process.execPath, '--no-opt', '--max-lazy'])
  assert.notEqual(inode(), before)
})

test('a file that others can write, or that belongs to another user, is replaced and not run', async (t) => {
  const before = inode()
  chmodSync(cacheFile(), 0o666)
  await prompt()
  assert.notEqual(inode(), before)
  assert.equal(statSync(cacheFile()).mode & 0o777, 0o600)
  if (process.getuid?.() !== 0) return t.diagnostic('the owner of a file can be changed by root only')
  const own = inode()
  chownSync(cacheFile(), 12_345, 12_345)
  await prompt()
  assert.notEqual(inode(), own)
  assert.equal(statSync(cacheFile()).uid, 0)
})

test('in a folder that others can write, there is none', async () => {
  rmSync(cacheFile())
  chmodSync(folder, 0o777)
  await prompt()
  assert.deepEqual(caches(), [])
})

test('where it cannot be written, nothing is said and nothing is left over', async () => {
  rmSync(folder, { recursive: true })
  writeFileSync(folder, 'a file in its place')
  await prompt()
  rmSync(folder)
  mkdirSync(folder)
  // The cache does not fit; the database is there already, and a message does.
  await prompt(['/bin/sh', '-c', 'ulimit -f 200; exec "$0" "$@"', process.execPath])
  assert.deepEqual(caches(), [])
})

test('twenty at once without one: each is stored, and one cache is left', async () => {
  rmSync(cacheFile())
  await Promise.all(
    Array.from({ length: 20 }, () => rig.prompt('hello', { env: { MILLRACE_ENGINE: `sqlite:${database}` } })),
  )
  stored += 20
  assert.equal(count(), stored)
  assert.equal(caches().length, 1)
  const made = inode()
  await prompt()
  assert.equal(inode(), made)
})

test('caches of earlier versions and drafts of hooks that were killed do not pile up', async () => {
  for (let age = 1; age <= 8; age += 1) {
    const name = path.join(folder, `hook-${'0'.repeat(16)}-v24.0.${age}-x64.cache${age % 2 === 0 ? '.123' : ''}`)
    writeFileSync(name, 'old')
    utimesSync(name, age, age)
  }
  rmSync(path.join(folder, caches().find((name) => name.includes(process.version)) ?? ''))
  await prompt()
  assert.equal(caches().length, 4)
  assert.ok(caches().some((name) => name.includes(process.version)))
})
