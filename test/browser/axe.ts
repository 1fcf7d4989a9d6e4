import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const look = (what: string): string => `axe.run(${what}).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html + ' ' + (any[0]?.message ?? ''))))`

/** What axe-core calls serious or critical on the page as it is now. */
export function seriousFaults(page: Page): Promise<readonly string[]> {
  return faults(page, `document, { resultTypes: ['violations'] }`)
}

/**
 * What is smaller than a finger needs, 24 by 24 pixels with the room around it. The bars of a waterfall are as wide as
 * their times; the line above says the same in words.
 */
export function smallTargets(page: Page): Promise<readonly string[]> {
  return faults(page, `{ exclude: ['.waterfall'] }, { runOnly: ['target-size'] }`)
}

async function faults(page: Page, what: string): Promise<readonly string[]> {
  // The debugger's protocol runs it, so the page's policy need not allow it.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE)
  return page.evaluate<readonly string[]>(look(what))
}
