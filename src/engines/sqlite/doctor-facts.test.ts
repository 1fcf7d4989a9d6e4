import assert from 'node:assert/strict'
import { open as openFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { expect, store, temporary } from '../../../test/fixtures/examined.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { judgeDisk, judgeFileSystem, judgeSqliteVersion, judgeWal } from '../../doctor/sqlite.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { toIso } from '../../time/iso.ts'
import { SqliteCore } from './core.ts'
import { Connection } from './database.ts'
import {
  checkIntegrity,
  diagnose,
  type Examination,
  fileSystemFacts,
  thisMachine,
  versionFacts,
} from './doctor-facts.ts'
import { SqliteEngine } from './engine.ts'
import { fileSystemOf } from './file-system.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const GIB = 1024 ** 3

const claim = async (engine: SqliteEngine, type = 'greet') => {
  const consumer = await engine.consume({ types: [{ type, leaseMs: 1_000 }], worker: 'host:1:a' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  assert.ok(lease)
  return { consumer, lease }
}

describe('settings', () => {
  it('finds everything in order on a fresh file', async (t) => {
    const { file } = await store(t)
    const machine = { ...thisMachine, mounts: async () => '/dev/vda / ext4 rw 0 0\n', freeBytes: async () => 50 * GIB }
    const core = new SqliteCore(new Connection(new DatabaseSync(file)), new TestClock(), null)
    t.after(async () => {
      await core.close()
      core.connection.close()
    })
    const examination: Examination = {
      synchronous: 'full',
      syncsHere: true,
      recoveryMaxMs: 45_000,
      deep: true,
      machine,
    }
    const findings = await diagnose(core, examination)
    expect(findings, 'ok')
    const subjects = 'sqlite version,journal mode,synchronous,file system,wal size,disk space,free space'
    assert.equal(
      findings.map(({ subject }) => subject).join(),
      `${subjects},clock,stuck jobs,unclaimable jobs,overdue jobs,workers,schedules,schema,integrity`,
    )
    const far = { mounts: async () => 'server:/x / nfs rw 0 0\n', freeBytes: async () => 1, fileBytes: async () => 2 }
    const worse = await diagnose(core, { ...examination, machine: far, walBytesMax: 1 })
    assert.deepEqual(
      worse.flatMap(({ severity, subject }) => (severity === 'ok' ? [] : [`${severity}: ${subject}`])),
      ['error: file system', 'warning: wal size', 'error: disk space'],
    )
  })

  it('knows the versions with the WAL-reset fault', () => {
    for (const version of ['3.51.2', '3.50.4', '3.7.0']) {
      expect([judgeSqliteVersion(versionFacts({ version }))], 'error', /WAL-reset fault/, /upgrade to Node 24\.15/)
    }
    for (const version of ['3.51.3', '3.53.4', '4.0.0']) expect([judgeSqliteVersion(versionFacts({ version }))], 'ok')
  })

  // B13
  it('finds a journal that is not the WAL', async (t) => {
    const handle = new DatabaseSync(join(await temporary(t), 'own.db'))
    const engine = await SqliteEngine.connect({ database: handle }, { clock: new TestClock(), migrate: true })
    const journal = async () => (await engine.diagnose()).filter(({ subject }) => subject === 'journal mode')
    expect(await journal(), 'ok')
    handle.exec('PRAGMA journal_mode = DELETE')
    expect(await journal(), 'error', /'delete', not WAL/)
    await engine.close()
    handle.close()
  })

  it('tells what a power cut may undo', async (t) => {
    expect(await (await store(t)).found('synchronous'), 'ok', /Millrace syncs the WAL/)
    expect(await (await store(t, { synchronous: 'normal' })).found('synchronous'), 'warning', /synchronous=full/)
    const handle = new DatabaseSync(join(await temporary(t), 'own.db'))
    const engine = await SqliteEngine.connect({ database: handle }, { clock: new TestClock(), migrate: true })
    const synchronous = async () => (await engine.diagnose()).filter(({ subject }) => subject === 'synchronous')
    expect(await synchronous(), 'ok', /SQLite syncs every commit \(FULL\)/)
    handle.exec('PRAGMA synchronous = NORMAL')
    expect(await synchronous(), 'warning', /NORMAL/)
    handle.exec('PRAGMA synchronous = OFF')
    expect(await synchronous(), 'error', /can corrupt the file/)
    await engine.close()
    handle.close()
  })

  it('reads the whole file for damage only when asked', async (t) => {
    const { handle, found } = await store(t)
    assert.deepEqual(await found('integrity'), [])
    expect(await found('integrity', true), 'ok')
    const damaged = join(await temporary(t), 'damaged.db')
    handle.prepare('VACUUM INTO ?').run(damaged)
    const copy = new DatabaseSync(damaged)
    const { rootpage } =
      copy.prepare(`SELECT rootpage FROM sqlite_master WHERE name = 'idx_job_events_job'`).get() ?? {}
    copy.close()
    const file = await openFile(damaged, 'r+')
    await file.write(Buffer.alloc(4096, 0xa5), 0, 4096, (Number(rootpage) - 1) * 4096)
    await file.close()
    const reader = new DatabaseSync(damaged)
    t.after(() => reader.close())
    expect(checkIntegrity(new Connection(reader)), 'error', /quick_check/, /restore the last backup/)
  })
})

describe('the file', () => {
  const mounts = [
    '/dev/vda / ext4 rw 0 0',
    'server:/export /srv/data nfs4 rw 0 0',
    '//server/share /srv/data/windows cifs rw 0 0',
    'ann@host: /home/ann/far fuse.sshfs rw 0 0',
    'share /mnt/with\\040space smb3 rw 0 0',
    'tmpfs /run tmpfs rw 0 0',
    'x /opt/strange fuse.strange rw 0 0',
    '/dev/vdb /srv/covered xfs rw 0 0',
    'server:/b /srv/covered nfs rw 0 0',
  ].join('\n')

  it('refuses network file systems, by the mount that holds the file', () => {
    const network: readonly (readonly [file: string, type: string])[] = [
      ['/srv/data/jobs.db', 'nfs4'],
      ['/srv/data/windows/jobs.db', 'cifs'],
      ['/home/ann/far/deep/jobs.db', 'fuse.sshfs'],
      ['/mnt/with space/jobs.db', 'smb3'],
      ['/srv/covered/jobs.db', 'nfs'],
    ]
    for (const [file, type] of network) {
      assert.equal(fileSystemOf(file, mounts), type, file)
      expect([judgeFileSystem(fileSystemFacts(file, mounts))], 'error', /network file system/, /local disk/)
    }
    expect([judgeFileSystem(fileSystemFacts('/srv/database/jobs.db', mounts))], 'ok', /ext4/)
    expect([judgeFileSystem(fileSystemFacts('/run/jobs.db', mounts))], 'warning', /tmpfs is memory/)
    expect([judgeFileSystem(fileSystemFacts('/opt/strange/jobs.db', mounts))], 'warning', /cannot be known/)
    expect([judgeFileSystem(fileSystemFacts('/srv/data/jobs.db', null))], 'ok', /unknown/)
  })

  it('finds a WAL that a reader keeps from being folded back', async (t) => {
    const { file, engine, handle } = await store(t)
    handle.exec('BEGIN')
    handle.prepare('SELECT count(*) FROM job_queue').get()
    const payload = JSON.stringify('x'.repeat(1_000))
    for (let batch = 0; batch < 12; batch += 1) {
      await engine.enqueue(Array.from({ length: 1_000 }, () => newJob({ payload })))
    }
    const bytes = await thisMachine.fileBytes(`${file}-wal`)
    const bound = 10 * 1024 * 1024
    assert.ok(bytes > bound, `${bytes}`)
    expect([judgeWal(bytes, bound)], 'warning', /not folded back/, /read transaction/)
    expect([judgeWal(bound, bound)], 'ok')
    assert.equal(await thisMachine.fileBytes(`${file}-absent`), 0)
    handle.exec('ROLLBACK')
  })

  it('finds a disk that is nearly full', async (t) => {
    expect([judgeDisk(10 * 1024 ** 2, 4096)], 'error', /10\.0 MiB free/, /Free space/)
    expect([judgeDisk(GIB - 1, 4096)], 'warning')
    expect([judgeDisk(5 * GIB, 6 * GIB)], 'warning', /backup may not fit/)
    expect([judgeDisk(5 * GIB, GIB)], 'ok')
    assert.ok((await thisMachine.freeBytes(await temporary(t))) > 0)
  })

  it('says that a database in memory ends with its process', async () => {
    const engine = await SqliteEngine.connect({ database: ':memory:' }, { clock: new TestClock(), migrate: true })
    const findings = await engine.diagnose()
    expect(
      findings.filter(({ subject }) => subject === 'file system'),
      'warning',
      /in memory/,
    )
    await engine.close()
  })
})

describe('the jobs', () => {
  it('takes a recent start of a finished job as the sign of a worker', async (t) => {
    const { clock, engine, found } = await store(t)
    await engine.enqueue([newJob(), newJob()])
    await clock.advance(6 * MINUTE_MS)
    const { consumer, lease } = await claim(engine)
    await consumer.settle([{ lease, outcome: { kind: 'complete', result: 'null', durationMs: 1 } }])
    expect(await found('workers'), 'ok')
    await clock.advance(6 * MINUTE_MS)
    expect(await found('workers'), 'warning', /'greet' has 1 job/)
  })

  it('finds jobs from the future', async (t) => {
    const { clock, engine, handle, found } = await store(t)
    await engine.enqueue([newJob({ id: 'now' }), newJob({ id: 'ahead' })])
    expect(await found('clock'), 'ok', /no job is dated in the future/)
    handle.prepare(`UPDATE job_queue SET created_at = ? WHERE id = 'ahead'`).run(toIso(clock.nowMs() + 3 * MINUTE_MS))
    expect(await found('clock'), 'error', /1 date in the future, job ahead by 3 min/, /time server/)
  })

  it('finds leases that nobody recovers, and jobs in progress without one', async (t) => {
    const { clock, engine, handle, found } = await store(t)
    await engine.enqueue([newJob(), newJob({ type: 'foreign', id: 'foreign' })])
    await claim(engine)
    await clock.advance(45_999)
    expect(await found('stuck jobs'), 'ok')
    await clock.advance(1_001)
    expect(
      await found('stuck jobs'),
      'error',
      /1 job in progress without a valid lease.*expired 46 s ago/,
      /millrace reap/,
    )
    handle.exec(`UPDATE job_queue SET status = 'completed', lease_until = NULL WHERE type = 'greet'`)
    handle.exec(`UPDATE job_queue SET status = 'in_progress' WHERE id = 'foreign'`)
    expect(await found('stuck jobs'), 'error', /1 job in progress without any lease/, /millrace cancel/)
  })

  it('finds jobs that are due longer than an hour', async (t) => {
    const { clock, engine, found } = await store(t)
    await engine.enqueue([newJob(), newJob(), newJob({ delayMs: 2 * HOUR_MS })])
    await clock.advance(HOUR_MS - 1)
    expect(await found('overdue jobs'), 'ok')
    await clock.advance(MINUTE_MS)
    expect(await found('overdue jobs'), 'warning', /2 jobs of type 'greet'.*the oldest due for 60 min/)
  })

  it('finds types with due jobs that no worker starts', async (t) => {
    const { clock, engine, found } = await store(t)
    await engine.enqueue([newJob({ type: 'worked' }), newJob({ type: 'worked' }), newJob({ type: 'orphan' })])
    expect(await found('workers'), 'ok')
    await clock.advance(6 * MINUTE_MS)
    expect(await found('workers'), 'warning', /'orphan' has 1 job .*no start of this type/s, /'worked' has 2 jobs/)
    const { consumer, lease } = await claim(engine, 'worked')
    expect(await found('workers'), 'warning', /'orphan'/)
    assert.equal((await found('workers')).length, 1, 'a live lease is a sign of a worker')
    const error = { name: 'Error', code: null, message: 'no', stack: null }
    await consumer.settle([{ lease, outcome: { kind: 'retry', delayMs: HOUR_MS, error } }])
    assert.equal((await found('workers')).length, 1, 'a failure is a sign of a worker')
    const second = await claim(engine, 'worked')
    const outcome = { kind: 'complete', result: 'null', durationMs: 1 } as const
    await second.consumer.settle([{ lease: second.lease, outcome }])
    await engine.enqueue([newJob({ type: 'worked' })])
    await clock.advance(6 * MINUTE_MS)
    const [, worked] = await found('workers')
    expect(worked === undefined ? [] : [worked], 'warning', /'worked' has 1 job .*the last sign of a worker is from/)
  })
})
