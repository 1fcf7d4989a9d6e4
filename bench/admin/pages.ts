/**
 * How soon a page of the dashboard can be used when a store is large: npm run bench:pages [-- --jobs N --rounds N --sqlite <file> --postgres <url>]
 *
 * A new tab without a cache opens each page by its address: from the request until its heading and what it is about are
 * shown and nothing is loading. The worst of all rounds counts. The first round is left out: it starts processes of the browser.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { createAdmin } from '../../src/http/index.ts'
import { open } from '../../src/index.ts'
import { DESKTOP, launchBrowser } from '../../test/browser/browser.ts'
import { buildPage } from '../../test/browser/built-page.ts'
import { machineFacts } from '../machine.ts'
import { percentile } from '../statistics.ts'
import { type Filling, filledId } from './fill.ts'
import { type LargeStore, largeStores, readSizes } from './stores.ts'

const USABLE_MS = 1_000
const sizes = readSizes(5)

interface Shown {
  readonly address: string
  /** A selector of what the reader came for. */
  readonly content: string
}

const ROW = 'main tbody tr'
const search = (text: string): string => encodeURIComponent(text)

const pagesOf = (filled: Filling): readonly Shown[] => [
  { address: '', content: ROW },
  { address: 'jobs', content: ROW },
  { address: `jobs?search=${search('type:type-3 state:completed')}`, content: ROW },
  { address: `jobs?search=${search('state:dead error:"host 3"')}`, content: ROW },
  { address: `jobs/${filledId(123_456, filled)}`, content: 'main h2' },
  { address: 'dead-letters', content: ROW },
  { address: `dead-letters/${filledId(95, filled)}`, content: 'main h2' },
  { address: 'queues', content: ROW },
  { address: 'queues/type-3', content: 'main svg' },
  { address: 'workers', content: 'main h1' },
  { address: 'schedules', content: 'main h1' },
  { address: 'alerts', content: 'main h1' },
  { address: 'audit', content: 'main h1' },
]

interface Row {
  readonly engine: string
  readonly page: string
  readonly p50Ms: number
  readonly worstMs: number
}

async function measure(store: LargeStore, browser: Browser, folder: string): Promise<readonly Row[]> {
  const mill = await open(store.url)
  const admin = createAdmin(mill, { page: folder })
  const { url } = await admin.listen({ port: 0 })
  const rows: Row[] = []
  try {
    for (const shown of pagesOf(store.filled)) {
      const took: number[] = []
      for (let round = 0; round <= sizes.rounds; round += 1) took.push(await showingMs(browser, url, shown))
      const [p50, worst] = [percentile(took.slice(1), 50), Math.max(...took.slice(1))]
      rows.push({
        engine: store.engine,
        page: `#/${shown.address}`,
        p50Ms: Math.round(p50),
        worstMs: Math.round(worst),
      })
    }
    return rows
  } finally {
    await admin.close()
    await mill.close()
  }
}

/** The clock starts when the tab is open: how long a browser takes for a new one is its own matter. */
async function showingMs(browser: Browser, url: string, { address, content }: Shown): Promise<number> {
  const page = await browser.newPage({ viewport: DESKTOP })
  page.on('pageerror', (error) => {
    throw error
  })
  const startedMs = performance.now()
  await page.goto(`${url}/#/${address}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator(content).first().waitFor()
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
  const tookMs = performance.now() - startedMs
  await page.close()
  return tookMs
}

const built = await buildPage()
const browser = await launchBrowser()
const rows: Row[] = []
try {
  for await (const store of largeStores(sizes)) rows.push(...(await measure(store, browser, built.folder)))
} finally {
  await browser.close()
  built.remove()
}
console.table(rows)
const { jobs, rounds } = sizes
mkdirSync('bench/results/admin', { recursive: true })
const result = { jobs, rounds, machine: machineFacts({}), rows }
writeFileSync('bench/results/admin/pages.json', `${JSON.stringify(result, null, 2)}\n`)
const slow = rows.filter(({ worstMs }) => worstMs > USABLE_MS)
for (const { engine, page, worstMs } of slow) console.log(`above ${USABLE_MS} ms: ${engine} ${page}: ${worstMs} ms`)
process.exit(slow.length === 0 ? 0 : 1)
