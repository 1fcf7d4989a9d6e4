/** A browser, and visits in it that notice whatever goes wrong on a page. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { chromiumPath } from '../servers/chromium.ts'

/**
 * Generous: a test that waits for something which never comes fails all the same. Figures rest a hundred times as long as
 * it took to count them, so a machine that stood still for a second while it counted shows them a hundred later.
 */
export const LIMIT_MS = 150_000

export interface VisitOptions extends BrowserContextOptions {
  /** Statuses that the test provokes: Chromium writes a line about each into the console. */
  readonly refusals?: readonly number[]
}

export interface Visit {
  readonly page: Page
  /** What a user would see in the console, or would not want to see at all. */
  readonly faults: readonly string[]
}

export const DESKTOP = { width: 1280, height: 800 }
export const PHONE = { width: 390, height: 844 }

export function launchBrowser(): Promise<Browser> {
  const isRoot = process.getuid?.() === 0
  return chromium.launch({ executablePath: chromiumPath(), args: isRoot ? ['--no-sandbox'] : [] })
}

/** Opens an address in a browser profile of its own. */
export async function visit(browser: Browser, url: string, options: VisitOptions = {}): Promise<Visit> {
  const { refusals = [], ...profile } = options
  const context = await browser.newContext({ viewport: DESKTOP, locale: 'en-GB', timezoneId: 'UTC', ...profile })
  context.setDefaultTimeout(LIMIT_MS)
  const page = await context.newPage()
  const faults = watchFaults(page, new URL(url).origin, refusals)
  await page.goto(url)
  return { page, faults }
}

function watchFaults(page: Page, origin: string, refusals: readonly number[]): readonly string[] {
  const faults: string[] = []
  const provoked = refusals.map((status) => `Failed to load resource: the server responded with a status of ${status}`)
  page.on('console', (line) => {
    const isFault = line.type() === 'error' || line.type() === 'warning'
    if (isFault && !provoked.some((text) => line.text().startsWith(text))) faults.push(`console: ${line.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`thrown: ${error.stack ?? error.message}`))
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { protocol, origin: asked } = new URL(request.url())
    if (asked !== origin && protocol !== 'data:') faults.push(`a request to ${request.url()}`)
  })
  return faults
}
