/** What holds for every page: text stays text, nobody is shut out, nothing runs over the edge of a phone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { seriousFaults, smallTargets } from './axe.ts'
import { PHONE } from './browser.ts'
import { goTo, MARKUP, setFullScene } from './full-scene.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

/** What is wider than the window, or is cut off at its edge without a way to scroll there. */
function overTheEdge(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`(() => {
    const width = document.documentElement.clientWidth
    const scrolls = (element) => {
      for (let box = element; box !== null; box = box.parentElement) {
        const style = getComputedStyle(box)
        if (['auto', 'scroll'].includes(style.overflowX) || style.textOverflow === 'ellipsis') return true
      }
      return false
    }
    const cut = [...document.querySelectorAll('main *')].filter((element) => {
      const { left, right, width: wide, height } = element.getBoundingClientRect()
      return wide > 1 && height > 1 && (right > width + 1 || left < -1) && !scrolls(element)
    })
    const page = document.documentElement.scrollWidth > width ? ['the page is ' + document.documentElement.scrollWidth + ' px wide'] : []
    return [...page, ...cut.slice(0, 3).map(({ outerHTML }) => outerHTML.slice(0, 120))]
  })()`)
}

test('the first page of an empty mill is no wider than a phone', async (t) => {
  const { visit } = await serve(t, { jobs: [] })
  const page = await visit('', { viewport: PHONE, hasTouch: true, isMobile: true })
  await page.getByRole('heading', { name: 'No jobs yet' }).waitFor()
  assert.deepEqual(await overTheEdge(page), [])
})

test('on every page', async (t) => {
  const { url, places, visit } = await setFullScene(t, serve)

  await t.test('markup in payloads, errors, progress, keys, tenants, names and reasons stays text', async () => {
    // Without the page's policy, which would keep such markup from running even if it became part of the page.
    const page = await visit('', { bypassCSP: true })
    await page.addInitScript('window.ran = () => { window.hasRun = true }')
    await page.reload()
    const selector = 'img[src="x"], svg[onload], #app script'
    const elements = page.locator(selector)
    const hasRun = (): Promise<boolean> => page.evaluate('window.hasRun === true')
    for (const place of places) {
      await goTo(page, url, place)
      if (place.hasText) await page.getByText(MARKUP).first().waitFor()
      assert.deepEqual([place.address, await elements.count(), await hasRun()], [place.address, 0, false])
    }
    // It would have run, and would have been noticed.
    const found = await page.evaluate<number>(`
      document.querySelector('main').innerHTML = ${JSON.stringify(MARKUP)}
      document.querySelectorAll(${JSON.stringify(selector)}).length`)
    assert.equal(found, 3)
    await page.waitForFunction('window.hasRun === true')
    // What was put into it is not the page's doing: it must not draw itself anew over that while the others are visited.
    await page.context().close()
  })

  for (const colorScheme of ['light', 'dark'] as const) {
    await t.test(`axe-core finds no serious fault in ${colorScheme} colours`, async () => {
      const page = await visit('', { colorScheme, reducedMotion: 'reduce' })
      const faults: string[] = []
      for (const place of places) {
        await goTo(page, url, place)
        for (const fault of await seriousFaults(page)) faults.push(`#/${place.address}: ${fault}`)
      }
      assert.deepEqual(faults, [])
    })
  }

  for (const width of [390, 768, 1024, 1440]) {
    await t.test(
      `nothing is wider than ${width} px, or too small for a finger, however long the name of a type is`,
      async () => {
        const touch = width === PHONE.width ? { hasTouch: true, isMobile: true } : {}
        const page = await visit('', { viewport: { width, height: PHONE.height }, ...touch })
        const wrong: string[] = []
        for (const place of places) {
          await goTo(page, url, place)
          const small = width === PHONE.width ? await smallTargets(page) : []
          for (const part of [...(await overTheEdge(page)), ...small]) wrong.push(`#/${place.address}: ${part}`)
        }
        assert.deepEqual(wrong, [])
      },
    )
  }

  await t.test('a phone has the navigation in a menu', async () => {
    const page = await visit('', { viewport: PHONE, hasTouch: true, isMobile: true })
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('navigation').getByRole('link', { name: 'Workers' }).click()
    await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor()
  })
})
