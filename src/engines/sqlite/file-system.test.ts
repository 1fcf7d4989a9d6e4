import assert from 'node:assert/strict'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { assertLocal, readMounts } from './file-system.ts'

test('a file on a network file system is refused, also through a link', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-mounts-'))
  try {
    const mounts = 'disk / ext4 rw 0 0\nserver:/export /srv/nfs nfs4 rw 0 0\n'
    const refusal = { code: 'ERR_STORAGE_OPEN', message: /nfs4, a network file system.*local disk/ }
    await assert.rejects(assertLocal('/srv/nfs/jobs.db', mounts), refusal)
    await assertLocal('/srv/nfsx/jobs.db', mounts)
    await assertLocal('/srv/nfs/jobs.db', null)

    await symlink(folder, join(folder, 'link'))
    await assert.rejects(assertLocal(join(folder, 'link', 'jobs.db'), `x ${folder} cifs rw 0 0`), {
      code: 'ERR_STORAGE_OPEN',
    })
    await assertLocal(join(folder, 'jobs.db'), await readMounts())
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
