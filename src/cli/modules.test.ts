import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadHandledJobs, loadJobs } from './modules.ts'

const fixture = (name: string): string => resolve(import.meta.dirname, '../../test/cli/fixtures', name)

describe('job modules', () => {
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-modules-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('collects named, default and listed exports, each job once', async () => {
    const jobs = await loadJobs([fixture('jobs.ts')])
    assert.deepEqual(jobs.map((job) => job.type).sort(), ['bomb', 'doomed', 'greet', 'stray', 'until-file'])
  })

  it('prefers a definition with a handler over the same one without', async () => {
    for (const order of [
      ['bare.ts', 'jobs.ts'],
      ['jobs.ts', 'bare.ts'],
    ]) {
      const jobs = await loadJobs(order.map(fixture))
      assert.equal(jobs.filter((job) => job.type === 'greet').length, 1)
      assert.equal(typeof jobs.find((job) => job.type === 'greet')?.run, 'function')
    }
  })

  it('refuses two handlers for one type, whichever way they come', async () => {
    await assert.rejects(loadJobs([fixture('twice.ts')]), { code: 'ERR_JOB_DUPLICATE', message: /'twin'/ })
  })

  it('refuses a missing file, a folder, a module without jobs and one that throws', async () => {
    await assert.rejects(loadJobs([join(folder, 'absent.ts')]), { code: 'ERR_MODULE_MISSING', message: /absent\.ts/ })
    await assert.rejects(loadJobs([folder]), { code: 'ERR_MODULE_INVALID', message: /not a file/ })
    await assert.rejects(loadJobs([fixture('no-jobs.mjs')]), { code: 'ERR_MODULE_INVALID', message: /exports no jobs/ })
    await assert.rejects(loadJobs([fixture('throws.mjs')]), { code: 'ERR_MODULE_INVALID', message: /no luck/ })
    const broken = join(folder, 'broken.ts')
    await writeFile(broken, 'export enum Colour { red }')
    await assert.rejects(loadJobs([broken]), {
      code: 'ERR_MODULE_INVALID',
      message: /broken\.ts.*could not be loaded/s,
    })
  })

  it('gives a worker only jobs with handlers, and only the types it asked for', async () => {
    await assert.rejects(loadHandledJobs([fixture('bare.ts')], null), {
      code: 'ERR_HANDLER_MISSING',
      message: /'greet'/,
    })
    await assert.rejects(loadHandledJobs([fixture('jobs.ts')], ['absent']), {
      code: 'ERR_TYPE_UNKNOWN',
      message: /'absent'.*greet/,
    })
    const jobs = await loadHandledJobs([fixture('jobs.ts'), fixture('bare.ts')], ['greet'])
    assert.deepEqual(
      jobs.map((job) => job.type),
      ['greet'],
    )
  })

  it('says what to do when the package of a module is CommonJS, as npm init makes it', async () => {
    const project = join(folder, 'project')
    await mkdir(project)
    await writeFile(join(project, 'package.json'), '{ "type": "commonjs" }')
    await writeFile(join(project, 'jobs.ts'), "import { join } from 'node:path'\nexport const job = join('a', 'b')\n")
    await assert.rejects(loadJobs([join(project, 'jobs.ts')]), {
      code: 'ERR_MODULE_INVALID',
      message: /set "type": "module" in its package\.json \(npm pkg set type=module\), or name it jobs\.mts$/,
    })
  })
})
