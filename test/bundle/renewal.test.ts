import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const INDEX = fileURLToPath(new URL('../../src/index.ts', import.meta.url))

const program = (url: string): string => `
  import { defineJob, open } from ${JSON.stringify(INDEX)}
  async function main() {
    const mill = await open(${JSON.stringify(url)})
    mill.events.on('worker.error', ({ during, error }) => console.log(during, error.code))
    const job = defineJob({ type: 'a', run: () => 'done' })
    const worker = await mill.work([job])
    console.log('working')
    console.log(await mill.result(await mill.enqueue(job, null)))
    await mill.close()
  }
  main()
`

for (const format of ['esm', 'cjs'] as const) {
  test(`a worker bundled as ${format} says on standard error, before its first job, that it has no renewal thread`, {
    timeout: 240_000,
  }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bundle-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    await symlink(join(INDEX, '../../node_modules'), join(folder, 'node_modules'))
    const entry = join(folder, 'program.ts')
    await writeFile(entry, program(`sqlite:${join(folder, 'jobs.db')}`))
    const bundle = await rolldown({
      input: entry,
      platform: 'node',
      external: [/^(?!.*millrace)(?![./])/],
      logLevel: 'silent',
    })
    const file = join(folder, format === 'esm' ? 'bundle.mjs' : 'bundle.cjs')
    await bundle.write({ file, format, codeSplitting: false })
    await bundle.close()
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file])
    const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    assert.equal(said, 'renewal thread ERR_MODULE_MISSING\nworking\ndone\n', complained)
    assert.match(
      complained,
      /\[MILLRACE_NO_RENEWAL_THREAD\] MillraceWarning: worker .* runs again\. .*out of the bundle/,
    )
  })
}
