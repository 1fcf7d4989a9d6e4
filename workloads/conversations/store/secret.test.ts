import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { readSecret, snippetHash } from './secret.ts'

const files = tempFiles()

// X128
test('the secret is created once beside the database, for its owner only, and leaves no draft', () => {
  const file = files.next()
  const secret = readSecret(file)
  assert.equal(secret.length, 32)
  assert.deepEqual(readSecret(file), secret)
  assert.equal(statSync(`${file}.secret`).mode & 0o777, 0o600)
  assert.deepEqual(
    readdirSync(path.dirname(file)).filter((name) => name.startsWith(path.basename(file))),
    [`${path.basename(file)}.secret`],
  )
})

// X128
test('threads that create the secret at once get the same one', async () => {
  const file = files.next()
  const code = `
    import { workerData, parentPort } from 'node:worker_threads'
    const { readSecret } = await import(workerData.module)
    parentPort.postMessage(Buffer.from(readSecret(workerData.file)).toString('hex'))`
  const module = new URL('./secret.ts', import.meta.url).href
  const read = () =>
    new Promise<string>((resolve, reject) => {
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
        workerData: { file, module },
      })
      worker.once('message', resolve)
      worker.once('error', reject)
    })
  const secrets = await Promise.all(Array.from({ length: 4 }, read))
  assert.equal(new Set(secrets).size, 1)
  assert.equal(secrets[0], readFileSync(`${file}.secret`).toString('hex'))
})

// X128
test('a hash depends on the secret', () => {
  const [one, other] = [readSecret(':memory:'), readSecret(':memory:')]
  assert.notDeepEqual(one, other)
  assert.equal(snippetHash(one, 'a@b.ch'), createHmac('sha256', one).update('a@b.ch').digest('hex'))
  assert.notEqual(snippetHash(one, 'a@b.ch'), snippetHash(other, 'a@b.ch'))
})

test('a damaged secret is refused and says what to do', () => {
  const file = files.next()
  writeFileSync(`${file}.secret`, 'short')
  assert.throws(() => readSecret(file), { code: 'ERR_STORAGE_FAILED', message: /5 bytes instead of 32; restore it/ })
})
