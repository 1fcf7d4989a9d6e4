import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { FileNotices } from './file-notices.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-notices-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function listeningTo(name: string) {
  const file = join(folder, name)
  writeFileSync(file, '')
  let heard = Promise.withResolvers<void>()
  const counts = { notices: 0 }
  const notices = new FileNotices(file, () => {
    counts.notices += 1
    heard.resolve()
  })
  const write = (): void => appendFileSync(file, 'x')
  const noticed = async (): Promise<void> => {
    await heard.promise
    heard = Promise.withResolvers<void>()
  }
  return { notices, counts, write, noticed }
}

test('a write sends one notice for each time it is listened to', async () => {
  const { notices, counts, write, noticed } = listeningTo('once')
  assert.equal(notices.areTrusted, false)
  for (let round = 1; round <= 2; round += 1) {
    assert.equal(notices.listen(), true)
    assert.equal(notices.listen(), false, 'it listens already')
    write()
    write()
    await noticed()
    write()
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(counts.notices, round)
    assert.equal(notices.isListening, false)
    assert.equal(notices.areTrusted, true)
  }
})

test('a missing notice ends the trust until the next one, and three in a row end the listening', async () => {
  const { notices, write, noticed } = listeningTo('missing')
  const notice = async (): Promise<void> => {
    notices.listen()
    write()
    await noticed()
  }
  const miss = (): void => {
    notices.listen()
    notices.expected()
  }
  await notice()
  miss()
  assert.equal(notices.areTrusted, false)
  await notice()
  assert.equal(notices.areTrusted, true)
  notices.kept()
  for (let round = 1; round <= 3; round += 1) {
    assert.equal(notices.listen(), true)
    notices.expected()
  }
  assert.equal(notices.listen(), false)
  assert.equal(notices.areTrusted, false)
})

test('a file that cannot be watched sends no notices and throws nothing', () => {
  for (const file of ['', join(folder, 'absent')]) {
    const notices = new FileNotices(file, () => assert.fail('nothing was written'))
    assert.equal(notices.listen(), false)
    assert.equal(notices.areTrusted, false)
  }
})
