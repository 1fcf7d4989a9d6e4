import assert from 'node:assert/strict'
import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { MemoryEngine } from '../engines/memory/index.ts'
import { EngineError, UnsupportedError } from '../errors.ts'
import { systemClock } from '../time/clock.ts'
import { ENGINE_SCHEMES, openEngine } from './open.ts'

const settings = { clock: systemClock, migrate: true }

test('a URL names its engine; an engine is taken as it is', async () => {
  const memory = await openEngine('memory:', settings)
  assert.equal(memory.name, 'memory')
  await memory.close()

  const own = new MemoryEngine()
  assert.equal(await openEngine(own, settings), own)
  await own.close()
  assert.ok(ENGINE_SCHEMES.includes('sqlite') && ENGINE_SCHEMES.includes('memory'))
})

test('a wrong URL is refused with an example of a right one', async () => {
  const wrong = ['', 'millrace.db', './x.db', 'mysql://host/db', 'http://host', 'MEMORY:', 'constructor:', ':memory:']
  for (const url of wrong) {
    await assert.rejects(
      openEngine(url, settings),
      (error) =>
        error instanceof EngineError &&
        error.code === 'ERR_ENGINE_URL' &&
        error.message.includes('sqlite:./millrace.db, postgres://…, redis://…, kafka://… or memory:'),
      url,
    )
  }
})

test('a missing URL, as from an unset environment variable, is told apart from a wrong one', async () => {
  for (const target of [undefined, null, 5]) {
    await assert.rejects(
      // @ts-expect-error the type forbids it; a caller without types can still do it
      openEngine(target, settings),
      (error) => error instanceof EngineError && error.code === 'ERR_ENGINE_URL' && /is not a URL/.test(error.message),
      String(target),
    )
  }
})

test('credentials in a URL do not reach the error', async () => {
  for (const url of [
    'mysql://user:s3cret@host/db',
    'mysql://user:s3@cret@host/db',
    'mysql://host/db?password=s3cret',
  ]) {
    await assert.rejects(openEngine(url, settings), (error) => {
      assert.ok(error instanceof EngineError)
      assert.doesNotMatch(error.message, /s3|cret@/)
      assert.match(error.message, /mysql:.*host/)
      return true
    })
  }
})

test('an object that is neither an engine nor a database is refused', async () => {
  await assert.rejects(openEngine({ some: 'object' }, settings), UnsupportedError)
})

test('an engine that cannot be opened leaves no file open', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-'))
  t.after(() => rm(directory, { recursive: true }))
  const file = join(directory, 'empty.db')
  await writeFile(file, '')
  await assert.rejects(openEngine(`sqlite:${file}`, { ...settings, migrate: false }), EngineError)
  const open = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  )
  assert.deepEqual(
    open.filter((path) => path.startsWith(directory)),
    [],
  )
})
