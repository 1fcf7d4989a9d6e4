/** A mill with its dashboard on a port of its own, as `millrace serve` has it, and a browser that visits it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext } from 'node:test'
import { type AnyJob, type Mill, open } from 'millrace'
import { type AdminOptions, createAdmin } from 'millrace/http'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser, type VisitOptions, visit } from './browser.ts'
import { type BuiltPage, buildPage } from './built-page.ts'

export interface Served {
  readonly mill: Mill
  readonly url: string
  /** Where the built page is. */
  readonly pageFolder: string
  /** What ends with the test, the newest first: visits before their server, the server before its mill. */
  readonly ends: AsyncDisposableStack
  /** Opens a page of the dashboard by its address behind the `#`. Any fault of it fails the test at its end. */
  visit(address?: string, options?: VisitOptions): Promise<Page>
}

/** Where a test's jobs are. */
export interface Store {
  readonly url: string
  remove(): unknown
}

export interface ServeOptions extends Omit<AdminOptions, 'page' | 'jobs' | 'alerting' | 'topics'> {
  readonly jobs: readonly AnyJob[]
  /** Default: SQLite in a temporary folder. */
  readonly store?: Store
  /** What stands on the mill itself. */
  readonly over?: (mill: Mill) => Pick<AdminOptions, 'alerting' | 'topics' | 'routes'>
}

export type Serve = (t: TestContext, options: ServeOptions) => Promise<Served>

/** For the top of a test file: the page is built and the browser started once, before its tests. */
export function useDashboard(): Serve {
  let built: BuiltPage | undefined
  let browser: Browser | undefined
  before(async () => {
    built = await buildPage()
    browser = await launchBrowser()
  })
  after(async () => {
    built?.remove()
    await browser?.close()
  })
  return (t, options) => {
    if (built === undefined || browser === undefined) throw new Error('the page was not built')
    return serveIn(t, browser, built.folder, options)
  }
}

async function serveIn(t: TestContext, browser: Browser, pageFolder: string, options: ServeOptions): Promise<Served> {
  const { jobs, store = temporaryStore(), over, ...rest } = options
  const faults: (readonly string[])[] = []
  const ends = new AsyncDisposableStack()
  t.after(async () => {
    await ends.disposeAsync()
    assert.deepEqual(faults.flat(), [])
  })
  ends.defer(async () => void (await store.remove()))
  const mill = await open(store.url, { jobs })
  ends.defer(() => mill.close())
  const admin = createAdmin(mill, { jobs, page: pageFolder, ...over?.(mill), ...rest })
  ends.defer(() => admin.close())
  const { url } = await admin.listen({ port: 0 })
  return {
    ...{ mill, url, pageFolder, ends },
    async visit(address = '', visitOptions = {}) {
      const made = await visit(browser, `${url}/#/${address}`, visitOptions)
      ends.defer(() => made.page.context().close())
      faults.push(made.faults)
      return made.page
    },
  }
}

function temporaryStore(): Store {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-browser-'))
  return { url: `sqlite:${join(folder, 'jobs.db')}`, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
