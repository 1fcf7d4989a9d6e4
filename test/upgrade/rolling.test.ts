import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type InstalledPackage, installCommit, installPresent, previousCommit } from './packages.ts'
import { ENGINES, upgradeOn } from './places.ts'
import { runUpgrade } from './rolling.ts'

const JOBS = 600
const seed = Number(process.env.UPGRADE_SEED ?? Math.floor(Math.random() * 2 ** 31))
const commit = previousCommit()

describe('a rolling upgrade under load', {
  skip: commit === null && 'this clone has no earlier commit to pack',
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-packages-'))
  let from: InstalledPackage | null
  let to: InstalledPackage
  before(() => {
    const [old, present] = [join(folder, 'old'), join(folder, 'present')]
    for (const project of [old, present]) mkdirSync(project)
    from = installCommit(commit ?? '', old)
    to = installPresent(present)
  })
  after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))

  for (const engine of ENGINES) {
    test(`loses and doubles nothing on ${engine}, and goes on when the schema gets an addition`, async (context) => {
      assert.ok(from)
      const options = { from, to, jobs: JOBS, seed }
      const { violations, ...figures } = await upgradeOn(engine, (place) => runUpgrade({ ...place, ...options }))
      context.diagnostic(`seed ${seed}, from ${options.from.label}: ${JSON.stringify(figures)}`)
      assert.deepEqual(violations.slice(0, 10), [])
      assert.ok(figures.acknowledged > JOBS / 2 && figures.dead > 0 && figures.ticks > 0, JSON.stringify(figures))
    })
  }
})
