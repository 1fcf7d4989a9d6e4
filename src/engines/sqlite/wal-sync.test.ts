import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { WalSync } from './wal-sync.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-wal-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('calls that come while a sync runs share the next one, which began after them', async () => {
  const file = join(folder, 'a.db')
  writeFileSync(`${file}-wal`, 'x')
  const wal = new WalSync(file)
  const first = wal.sync()
  const second = wal.sync()
  const third = wal.sync()
  assert.notEqual(first, second)
  assert.equal(second, third)
  const order: string[] = []
  await Promise.all([first.then(() => order.push('first')), second.then(() => order.push('second'))])
  assert.deepEqual(order, ['first', 'second'])
  assert.notEqual(wal.sync(), second)
  await wal.close()
})

test('a WAL that cannot be synced rejects, and the next call tries again', async () => {
  const file = join(folder, 'b.db')
  const wal = new WalSync(file)
  await assert.rejects(wal.sync(), { code: 'ENOENT' })
  writeFileSync(`${file}-wal`, 'x')
  await wal.sync()
  await wal.close()
})
