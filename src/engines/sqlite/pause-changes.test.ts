import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'

async function engines(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pauses-'))
  const opened: Engine[] = []
  for (let count = 0; count < 2; count += 1) {
    opened.push(await openEngine(`sqlite:${join(folder, 'jobs.db')}`, { clock: systemClock, migrate: true }))
  }
  t.after(async () => {
    for (const engine of opened) await engine.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const [mine, other] = opened.map(({ records }) => records)
  assert.ok(mine?.onChange && other)
  return { mine, other, onChange: mine.onChange }
}

const pause = { name: 'mail', revision: '1', body: '{}' }

test('a pause is heard when another process sets it and when it lifts it', { timeout: 60_000 }, async (t) => {
  const { mine, other, onChange } = await engines(t)
  let paused = ''
  let heard = Promise.withResolvers<void>()
  const until = async (wanted: string): Promise<void> => {
    while (paused !== wanted) {
      await heard.promise
      heard = Promise.withResolvers<void>()
      paused = (await mine.list('pause')).map(({ name }) => name).join()
    }
  }
  t.after(onChange(() => heard.resolve()))
  await other.save('pause', pause, null)
  await until('mail')
  await other.remove('pause', ['mail'])
  await until('')
})

test('a pause of this process is heard at once', async (t) => {
  const { mine, onChange } = await engines(t)
  let heard = 0
  const stop = onChange(() => {
    heard += 1
  })
  await mine.save('pause', pause, null)
  assert.ok(heard >= 1)
  const before = heard
  await mine.remove('pause', ['mail'])
  assert.ok(heard > before)
  stop()
  const last = heard
  await mine.save('pause', pause, null)
  assert.equal(heard, last)
})

test('many commits of another process are one reason to look', { timeout: 60_000 }, async (t) => {
  const { other, onChange } = await engines(t)
  let heard = 0
  t.after(
    onChange(() => {
      heard += 1
    }),
  )
  const fromMs = systemClock.monotonicMs()
  for (let commits = 0; commits < 60; commits += 1) {
    await other.put('worker', [{ name: 'w', body: '{}' }], 60_000)
    await systemClock.sleep(10)
  }
  const tookMs = systemClock.monotonicMs() - fromMs
  assert.ok(heard <= 2 + tookMs / 500, `${heard} times in ${Math.round(tookMs)} ms`)
})
