/** What a page of another site can do with this server, from a browser in which the dashboard is open. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from 'millrace'
import { type AdminOptions, createAdmin } from 'millrace/http'
import type { Page } from 'playwright-core'
import { eventually } from '../../conformance/process/child.ts'
import { listenOn } from '../../src/http/server.ts'
import { LIMIT_MS } from './browser.ts'
import { type Served, useDashboard } from './served-dashboard.ts'

const serve = useDashboard()
const greet = defineJob({ type: 'greet', run: () => 'Hello' })
const TOKEN = 'admin-0123456789abcdef'
const STREAM = '/api/v1/events'
/** Attempts that send a header which asks first. */
const PREFLIGHTS = 2
const HERE = { port: 0, host: '127.0.0.1' }

/** Another port is another origin of the same site; another name is another site. */
const NAMES = ['127.0.0.1', 'localhost'] as const

/** What a page can send on its own. A stream that was opened for it shows as `held`, or in what the server answered. */
const ATTEMPTS = `async (url, token) => {
  const stream = url + '${STREAM}'
  const HELD_AFTER_MS = 20_000
  const bounded = (act) => Promise.race([act(), new Promise((resolve) => setTimeout(resolve, HELD_AFTER_MS, 'held'))])
  const source = (given) => bounded(() => new Promise((resolve) => {
    const opened = new EventSource(stream, given)
    const end = (text) => { opened.close(); resolve(text) }
    opened.onopen = () => end('held')
    opened.onerror = () => end('refused')
  }))
  const asked = (path, given) => bounded(() => {
    const cut = new AbortController()
    const answer = fetch(url + path, { ...given, signal: cut.signal })
    return answer.then(({ type }) => { cut.abort(); return type === 'opaque' ? 'unreadable' : 'read' }, () => 'refused')
  })
  const loaded = (tag) => bounded(() => new Promise((resolve) => {
    const element = Object.assign(document.createElement(tag), { src: stream })
    element.onload = () => resolve('unreadable')
    element.onerror = () => resolve('refused')
    document.body.append(element)
  }))
  const bearer = { authorization: 'Bearer ' + token }
  const pause = '/api/v1/queues/greet/pause'
  const plain = { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: '{}' }
  const json = { method: 'POST', headers: { ...bearer, 'content-type': 'application/json' }, body: '{}' }
  return [
    await source({}),
    await source({ withCredentials: true }),
    await asked('${STREAM}', { credentials: 'include' }),
    await asked('${STREAM}', { credentials: 'include', mode: 'no-cors' }),
    await asked('${STREAM}', { headers: bearer }),
    await asked('/api/v1/jobs', { credentials: 'include' }),
    await asked(pause, { ...plain, credentials: 'include' }),
    await asked(pause, json),
    await loaded('img'),
    await loaded('script'),
    await loaded('iframe'),
  ]
}`

interface Answered {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly status: number
}

/** The dashboard on a server that notes what it answered to other sites: a browser also calls a stream refused that was opened. */
async function watchedServer({ mill, pageFolder, ends }: Served, options: Pick<AdminOptions, 'tokens'>) {
  const admin = createAdmin(mill, { jobs: [greet], page: pageFolder, ...options })
  ends.defer(() => admin.close())
  const toOthers: Answered[] = []
  const server = await listenOn((request, response) => {
    const { method, url: path, headers } = request
    const isOther = ['same-site', 'cross-site'].includes(String(headers['sec-fetch-site']))
    if (isOther) response.once('close', () => toOthers.push({ method, path, status: response.statusCode }))
    void admin.node(request, response)
  }, HERE)
  ends.defer(() => server.close())
  return { url: server.url, toOthers }
}

async function openDashboard(page: Page, url: string, hasTokens: boolean): Promise<void> {
  await page.goto(url)
  if (hasTokens) {
    await page.getByRole('textbox', { name: 'Token' }).fill(TOKEN)
    await page.getByRole('button', { name: 'Log in' }).click()
  }
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
}

for (const options of [{}, { tokens: [{ token: TOKEN, role: 'admin', who: 'ada' }] }] as const) {
  const hasTokens = 'tokens' in options
  test(`a page of another site opens no event stream and does nothing, ${hasTokens ? 'with' : 'without'} tokens`, async (t) => {
    const served = await serve(t, { jobs: [greet] })
    const { url, toOthers } = await watchedServer(served, options)
    const answer = '<!doctype html><p>Another site'
    const other = await listenOn((_, response) => response.setHeader('content-type', 'text/html').end(answer), HERE)
    served.ends.defer(() => other.close())
    const context = (await served.visit()).context()
    // Cookies do not know ports, so one that any server of this machine has set is sent here.
    await context.addCookies(NAMES.map((domain) => ({ name: 'token', value: TOKEN, domain, path: '/' })))
    await openDashboard(await context.newPage(), url, hasTokens)

    for (const name of NAMES) {
      const page = await context.newPage()
      await page.goto(`http://${name}:${new URL(other.url).port}/`)
      toOthers.length = 0
      const outcomes = await page.evaluate<readonly string[]>(`(${ATTEMPTS})('${url}', '${TOKEN}')`)
      const isKept = (outcome: string): boolean => outcome === 'refused' || outcome === 'unreadable'
      assert.deepEqual([name, outcomes.filter((outcome) => !isKept(outcome))], [name, []])
      // A preflight is answered without any permission, so what it asks for is never sent.
      const sent = (): readonly Answered[] => toOthers.filter(({ method }) => method !== 'OPTIONS')
      const expected = outcomes.length - PREFLIGHTS
      await eventually(async () => sent().length === expected, `${expected} answers`, LIMIT_MS)
      assert.deepEqual([name, sent().filter(({ status }) => status !== 403)], [name, []])
      // A window of its own would hold a stream as well.
      const opened = page.waitForEvent('popup')
      await page.evaluate(`void window.open('${url}${STREAM}')`)
      await (await opened).getByText('ERR_ORIGIN_REFUSED').waitFor()
    }
    assert.deepEqual(await served.mill.paused(), [])
  })
}
