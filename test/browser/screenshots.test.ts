/** The pictures of docs/screenshots, taken by `npm run screenshots`; other runs of the tests leave them alone. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { setBrokerScene } from './broker-scene.ts'
import { PHONE } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const FOLDER = resolve(import.meta.dirname, '../../docs/screenshots')
const BYTES_MAX = 150_000
const skip = process.env.MILLRACE_SCREENSHOTS === '1' ? false : 'set MILLRACE_SCREENSHOTS=1 to take them'
const serve = skip === false ? useDashboard() : null

async function take(page: Page, name: string): Promise<void> {
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
  const { width = 0, height = 0 } = page.viewportSize() ?? {}
  // A full page is cut off below rather than kept too large.
  for (const part of [1, 0.9, 0.8]) {
    const clip = { x: 0, y: 0, width, height: Math.round(height * part) }
    const picture = await page.screenshot({ caret: 'initial', clip })
    if (picture.length >= BYTES_MAX) continue
    mkdirSync(FOLDER, { recursive: true })
    return writeFileSync(join(FOLDER, `${name}.png`), picture)
  }
  assert.fail(`${name}.png has more than ${BYTES_MAX} bytes`)
}

test('every page with the tour’s jobs', { skip, timeout: 300_000 }, async (t) => {
  assert.ok(serve)
  // The tour keeps its files in the folder that it is started in.
  const before = process.cwd()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-tour-'))
  process.chdir(folder)
  const { setTourScene } = await import('./tour-scene.ts')
  const { visit, url, addresses, calm } = await setTourScene(t, serve)
  // After the scene's own end: jobs of the tour write into the folder until then.
  t.after(() => {
    process.chdir(before)
    rmSync(folder, { recursive: true, force: true })
  })
  const page = await visit('', { reducedMotion: 'reduce' })
  await page.getByRole('heading', { name: 'Types' }).waitFor()
  await take(page, 'overview')
  await page.emulateMedia({ colorScheme: 'dark' })
  await take(page, 'overview-dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await calm()
  for (const [name, { address, heading }] of Object.entries(addresses)) {
    await page.goto(`${url}/#/${address}`)
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
    await take(page, name)
  }
  const phone = await visit('', { viewport: PHONE, isMobile: true, reducedMotion: 'reduce' })
  await phone.getByRole('heading', { name: 'Types' }).waitFor()
  await take(phone, 'overview-phone')
})

test('the topics of a broker', { skip, timeout: 300_000 }, async (t) => {
  assert.ok(serve)
  const { visit } = await setBrokerScene(t, serve)
  const page = await visit('topics', { reducedMotion: 'reduce' })
  await page.getByRole('row', { name: /^Far behind/ }).waitFor()
  await take(page, 'topics')
})
