/** The built hook where its surroundings are against it: no home folder, pipes in place of files, input that never ends. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { type HookRun, hookRig } from '../../../test/fixtures/hook.ts'

const RAW = 'john.smith@example.com'
/** Twice what it may take on a quiet machine; the whole suite runs beside this test. */
const BOUND_MS = 4_000

const rig = await hookRig()
const folderOf = (file: string): string => path.dirname(file)

function assertHarmless({ code, stdout, stderr, tookMs }: HookRun, said: RegExp): void {
  assert.deepEqual([code, stdout], [0, ''], stderr)
  assert.ok(tookMs < BOUND_MS, `${tookMs} ms`)
  assert.match(stderr, said)
  assert.doesNotMatch(stderr, /john|smith/)
}

function assertStored(file: string): void {
  const database = new DatabaseSync(file)
  assert.deepEqual(
    database
      .prepare('SELECT content FROM messages')
      .all()
      .map((row) => row.content),
    ['hello [EMAIL]'],
  )
  database.close()
}

test('input that comes in drops and never ends is given up', async () => {
  const drip = (drop: string) => [
    '/bin/sh',
    '-c',
    `(while printf '${drop}'; do sleep 0.2; done) | "$0" "$@"`,
    process.execPath,
  ]
  const run = await rig.run('', { command: drip('{"a":"}') })
  assertHarmless(run, /did not end in time; nothing was stored/)
})

test('an entry of the spool is written whole or not at all', async () => {
  const file = rig.next()
  // 512 bytes at most in a file: a part of the entry could be written.
  const limited = ['/bin/sh', '-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath]
  const run = await rig.prompt(`${'long '.repeat(600)} ${RAW}`, {
    command: limited,
    env: { MILLRACE_ENGINE: `sqlite:${file}` },
  })
  assertHarmless(run, /the spool cannot be written either \(EFBIG\); the message was not stored/)
  assert.deepEqual(readdirSync(`${file}.spool`), [])
})

test('where no file can be written, nothing is left of the attempt to make a secret', async () => {
  const file = rig.next()
  const limited = ['/bin/sh', '-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath]
  await rig.prompt(`hello ${RAW}`, { command: limited, env: { MILLRACE_ENGINE: `sqlite:${file}` } })
  assert.deepEqual(
    readdirSync(folderOf(file)).filter((name) => name.includes('secret')),
    [],
  )
})

test('a home folder that cannot be reached, or none at all, does not keep a message from the database', async () => {
  const [unreachable, none, relative] = [rig.next(), rig.next(), rig.next()]
  const loop = path.join(folderOf(unreachable), 'loop')
  symlinkSync('loop', loop)
  const at = (file: string, HOME: string) =>
    rig.prompt(`hello ${RAW}`, { env: { HOME, MILLRACE_ENGINE: `sqlite:${file}` } })
  assertHarmless(await at(unreachable, loop), /conversations.json cannot be read \(ELOOP\)/)
  assertHarmless(await at(none, ''), /^$/)
  assertHarmless(await at(relative, 'here'), /^$/)
  for (const file of [unreachable, none, relative]) assertStored(file)
  assertHarmless(
    await rig.prompt(`hello ${RAW}`, { env: { HOME: '' } }),
    /this user has none; set HOME, .*nothing was stored/,
  )
})

test('pipes in place of the secret, the settings and the log hold nothing up', async () => {
  const file = rig.next()
  const home = path.join(folderOf(file), 'home')
  mkdirSync(path.join(home, '.millrace'), { recursive: true })
  execFileSync('mkfifo', [
    `${file}.secret`,
    ...['conversations.json', 'hook.log'].map((name) => path.join(home, '.millrace', name)),
  ])
  const run = await rig.prompt(`hello ${RAW}`, { env: { HOME: home, MILLRACE_ENGINE: `sqlite:${file}` } })
  assertHarmless(run, /conversations.json cannot be read \(EINVAL\)/)
  assertStored(file)
})

test('a device in place of the secret holds nothing up', async () => {
  const file = rig.next()
  symlinkSync('/dev/zero', `${file}.secret`)
  assertHarmless(await rig.prompt(`hello ${RAW}`, { env: { MILLRACE_ENGINE: `sqlite:${file}` } }), /^$/)
  assertStored(file)
})
