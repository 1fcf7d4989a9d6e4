import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const LOOK = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html + ' ' + (any[0]?.message ?? ''))))`

/** What axe-core calls serious or critical on the page as it is now. */
export async function seriousFaults(page: Page): Promise<readonly string[]> {
  // The debugger's protocol runs it, so the page's policy need not allow it.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE)
  return page.evaluate<readonly string[]>(LOOK)
}
