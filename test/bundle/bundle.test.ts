import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { bundleFolder, bundlers, extensionOf, type Format, ROOT, run, THREAD } from './bundles.ts'

const INDEX = join(ROOT, 'src/index.ts')

/** Enqueues a job whose handler blocks the event loop for longer than its lease, runs it and says how often it ran. */
const program = (url: string): string => `
  import { defineJob, open } from ${JSON.stringify(INDEX)}
  async function main() {
    const mill = await open(${JSON.stringify(url)})
    mill.events.on('worker.error', ({ during, error }) => console.log(during, error.code))
    mill.events.on('lease.lost', () => console.log('lease lost'))
    const job = defineJob({
      type: 'block',
      lease: '3s',
      run: ({ job, payload }) => {
        const until = Date.now() + payload
        while (Date.now() < until);
        return \`attempt \${job.attempt}\`
      },
    })
    const { id } = await mill.enqueue(job, Number(process.argv[2] ?? 0))
    const worker = await mill.work([job])
    console.log(await mill.result(id))
    await mill.close()
  }
  main()
`

async function programIn(folder: string): Promise<string> {
  const entry = join(folder, 'source.ts')
  await writeFile(entry, program(`sqlite:${join(folder, 'jobs.db')}`))
  return entry
}

for (const [name, bundle] of Object.entries(bundlers)) {
  for (const format of ['esm', 'cjs'] satisfies readonly Format[]) {
    describe(`a program bundled by ${name} as ${format}`, { timeout: 240_000 }, () => {
      test('renews leases from its thread when the thread is a second entry', async (t) => {
        const folder = await bundleFolder(t)
        await bundle({ program: await programIn(folder), 'renewal-thread': THREAD }, folder, format)
        const { out, err } = await run(join(folder, `program${extensionOf(format)}`), '4500')
        assert.deepEqual({ out, err }, { out: 'attempt 1\n', err: '' })
      })

      test('says on standard error that it has no renewal thread when the thread was not built', async (t) => {
        const folder = await bundleFolder(t)
        await bundle({ program: await programIn(folder) }, folder, format)
        const { out, err } = await run(join(folder, `program${extensionOf(format)}`), '0')
        assert.equal(out, 'renewal thread ERR_MODULE_MISSING\nattempt 1\n', err)
        assert.match(err, /\[MILLRACE_NO_RENEWAL_THREAD\] MillraceWarning: worker .* runs again\. .*second entry/)
      })
    })
  }
}
