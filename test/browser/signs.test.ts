/** What the pages say about the state of things: reasons, thresholds, causes, edits, times and charts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, NonRetryable } from 'millrace'
import { type Alerting, healthRules, startAlerting } from 'millrace/observe'
import { z } from 'zod'
import { eventually } from '../../conformance/process/child.ts'
import { LIMIT_MS } from './browser.ts'
import { useDashboard } from './served-dashboard.ts'

const serve = useDashboard()

const pay = defineJob({
  type: 'pay',
  attempts: 1,
  payload: z.object({
    amount: z.number(),
    currency: z.string(),
    note: z.string(),
    pin: z.string().meta({ writeOnly: true }),
  }),
  run({ payload }) {
    if (payload.currency !== 'EUR') throw new NonRetryable(`the currency '${payload.currency}' is unknown`)
    return payload.pin === '4711' ? 'paid with the right pin' : 'a wrong pin'
  },
})
const WRONG = { amount: 12, currency: 'EURO', note: 'urgent', pin: '4711' }

test('a letter with a secret is mended without retyping it, and the pages show that its payload was edited', async (t) => {
  const { mill, visit } = await serve(t, { jobs: [pay] })
  await mill.work([pay])
  const { id } = await mill.enqueue(pay, WRONG)
  await eventually(async () => (await mill.job(id))?.state === 'dead_letter', 'a dead letter', LIMIT_MS)
  const page = await visit(`dead-letters/${id}`, { refusals: [400] })
  const payload = page.getByRole('textbox', { name: 'Payload' })
  await payload.waitFor()
  assert.equal(await payload.isEditable(), true)
  const text = await payload.inputValue()
  assert.match(text, /"pin": "\[redacted\]"/)
  await page.getByText('Leave [redacted] where it is to keep the stored value').waitFor()
  // A placeholder that was put elsewhere is refused, and nothing is lost.
  await payload.fill(text.replace('"EURO"', '"[redacted]"'))
  await page.getByRole('button', { name: 'Replay with this payload' }).click()
  await page.getByRole('alert').filter({ hasText: '[redacted]' }).waitFor()
  await page.getByRole('alert').getByText('currency', { exact: true }).waitFor()
  // An edit that did not help: the letter itself says who tried what, and why.
  await payload.fill(text.replace('EURO', 'GBP'))
  await page.getByRole('textbox', { name: 'Reason (optional)' }).fill('a guess')
  await page.getByRole('button', { name: 'Replay with this payload' }).click()
  await page.waitForURL(/#\/jobs\//)
  await eventually(async () => (await mill.job(id))?.state === 'dead_letter', 'a dead letter again', LIMIT_MS)
  await page.goto(`${new URL(page.url()).origin}/#/dead-letters/${id}`)
  const notice = page.locator('.notice').filter({ hasText: 'Its payload was edited by local' })
  await notice.filter({ hasText: '“a guess”' }).filter({ hasText: 'currency "EURO" "GBP"' }).waitFor()
  await payload.fill(text.replace('EURO', 'EUR').replace('urgent', 'n'.repeat(500)))
  await page.getByRole('textbox', { name: 'Reason (optional)' }).fill('a typo')
  await page.getByRole('button', { name: 'Replay with this payload' }).click()
  await page.getByRole('region', { name: 'result' }).filter({ hasText: 'paid with the right pin' }).waitFor()

  const edited = page.getByText('Its payload was edited')
  await edited.waitFor()
  await page.getByText('“a typo”').first().waitFor()
  const rows = page.getByRole('row').filter({ hasText: 'replayed, payload edited' })
  await rows.nth(1).waitFor()
  const changes = page.locator('.notice').getByRole('list', { name: 'What was edited' })
  await changes.getByRole('listitem').filter({ hasText: 'currency "GBP" "EUR"' }).waitFor()
  await changes.getByRole('listitem').filter({ hasText: 'note "urgent" a long value' }).waitFor()
  assert.equal(await page.getByText('4711').count(), 0)
  await page.goto(`${new URL(page.url()).origin}/#/audit`)
  await rows.filter({ hasText: 'currency' }).nth(1).waitFor()
})

test('a status that is not healthy and an alert say why, from which threshold on, and lead to the cause', async (t) => {
  let alerting: Alerting | undefined
  const { mill, visit, ends } = await serve(t, {
    jobs: [pay],
    over: (on) => {
      alerting = startAlerting(on, { rules: healthRules({ critical: ['pay'] }), every: '100ms' })
      return { alerting }
    },
  })
  ends.defer(async () => alerting?.stop())
  await mill.work([pay])
  await mill.enqueue(pay, WRONG)
  const page = await visit()
  await page.getByText('Degraded').waitFor()
  const reasons = page.getByRole('list', { name: 'Why it is not healthy' })
  await reasons.getByRole('link', { name: '1 dead letter waits' }).click()
  await page.getByRole('heading', { name: 'Dead letters', level: 1 }).waitFor()

  await page.goto(`${new URL(page.url()).origin}/#/alerts`)
  const card = (name: string) =>
    page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) })
  await card('CriticalDeadLetters').getByText('value 1, threshold 1').waitFor()
  await card('DeadLetters').getByRole('link', { name: 'See the dead letters' }).waitFor()
  await card('CriticalDeadLetters').getByRole('link', { name: 'See the dead letters of pay' }).click()
  await page.getByRole('heading', { name: 'Dead letters', level: 1 }).waitFor()
  assert.match(page.url(), /#\/dead-letters\?type=pay$/)
})

test('how long ago something was goes on by itself', async (t) => {
  const greet = defineJob({ type: 'greet', run: () => 'Hello' })
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.work([greet])
  const receipt = await mill.enqueue(greet, {})
  await mill.result(receipt)
  const page = await visit(`jobs/${receipt.id}`)
  const why = page.locator('.why-main')
  await why.filter({ hasText: 'ago)' }).waitFor()
  // Nothing is loaded any more, so only the page itself can move it.
  await page.route('**/api/v1/**', () => {})
  const said = await why.innerText()
  assert.doesNotMatch(said, /\d ms ago/)
  await eventually(async () => (await why.innerText()) !== said, 'a later time', LIMIT_MS)
})

/** Remembers what charts draw: the labels of axes, and the most points of a line. */
const WATCH_CANVAS = `
  window.labels = new Set()
  window.mostPoints = 0
  const write = CanvasRenderingContext2D.prototype.fillText
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.labels.add(text)
    return write.call(this, text, ...rest)
  }
  const drawn = new WeakMap()
  const lineTo = Path2D.prototype.lineTo
  Path2D.prototype.lineTo = function (...at) {
    drawn.set(this, (drawn.get(this) ?? 0) + 1)
    window.mostPoints = Math.max(window.mostPoints, drawn.get(this))
    return lineTo.apply(this, at)
  }`

test('a quarter of an hour is drawn as lines, not as a solid block, and axes count in whole, even steps', async (t) => {
  const greet = defineJob({ type: 'greet' })
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.enqueue(greet, {})
  const page = await visit()
  await page.addInitScript(WATCH_CANVAS)
  const nowMs = Date.now()
  const points = Array.from({ length: 450 }, (_, step) => ({
    atMs: nowMs - (450 - step) * 2_000,
    // Bursts: every second sample has nothing.
    completedPerSecond: step % 2 === 0 ? 0 : 7,
    failedPerSecond: step % 3 === 0 ? 1 : 0,
    enqueuedPerSecond: step % 2 === 0 ? 7 : 0,
    ...{ waitP50Ms: 3, waitP95Ms: step % 2 === 0 ? 3 : 900, durationP50Ms: 2, durationP95Ms: step % 2 === 0 ? 4 : 800 },
    ...{ ready: step % 2 === 0 ? 0 : 7, delayed: 0, inProgress: 0, dead: 0 },
  }))
  await page.route('**/api/v1/history*', (route) => route.fulfill({ json: { stepMs: 2_000, points } }))
  await page.reload()
  await page.getByRole('img', { name: /^Depth, latest/ }).waitFor()
  const mostPoints = (): Promise<number> => page.evaluate('window.mostPoints')
  await eventually(async () => (await mostPoints()) > 10, 'lines', LIMIT_MS)
  const most = await mostPoints()
  assert.ok(most <= 200, `${most} points in a line`)
  // Charts may have been drawn before they had these points, with other steps.
  await page.evaluate('window.labels.clear()')
  await page.getByRole('radio', { name: '1 h', exact: true }).check()
  await page.getByRole('img', { name: /^Depth, latest/ }).waitFor()
  const counts = async (): Promise<readonly number[]> => {
    const labels = await page.evaluate<readonly string[]>('[...window.labels]')
    return labels.filter((label) => /^\d+$/.test(label)).map(Number)
  }
  await eventually(async () => (await counts()).length > 1, 'axes', LIMIT_MS)
  assertEven(await counts())
})

test('charts with one sample, and with very large numbers, are whole', async (t) => {
  const greet = defineJob({ type: 'greet' })
  const { mill, visit } = await serve(t, { jobs: [greet] })
  await mill.enqueue(greet, {})
  const page = await visit()
  // Labels that are cut at the edge of their canvas, and everything that is drawn with a fill: lines have none.
  await page.addInitScript(`
    window.labels = new Set()
    window.cut = new Set()
    window.discs = 0
    const write = CanvasRenderingContext2D.prototype.fillText
    CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
      const right = this.textAlign === 'right' ? x : x + this.measureText(text).width / 2
      window.labels.add(text)
      if (right - this.measureText(text).width < 0) window.cut.add(text)
      return write.call(this, text, x, ...rest)
    }
    const arc = Path2D.prototype.arc
    Path2D.prototype.arc = function (...at) {
      window.discs += 1
      return arc.apply(this, at)
    }`)
  const point = {
    ...{ completedPerSecond: 234_567, failedPerSecond: 0, enqueuedPerSecond: 0, ready: 3_456_789_012, delayed: 1 },
    ...{
      waitP50Ms: 3,
      waitP95Ms: 90_000_000,
      durationP50Ms: 900_000,
      durationP95Ms: 7_200_000,
      inProgress: 0,
      dead: 0,
    },
  }
  const samples = async (count: number): Promise<void> => {
    const points = Array.from({ length: count }, (_, step) => ({ ...point, atMs: Date.now() - (count - step) * 2_000 }))
    await page.route('**/api/v1/history*', (route) => route.fulfill({ json: { stepMs: 2_000, points } }))
    // The next sample of the server would be a second one.
    await page.route('**/api/v1/events', () => {})
    await page.reload()
    await page.getByRole('img', { name: /^Depth, latest: ready 3.5B/ }).waitFor()
  }
  const drawn = (name: string): Promise<number> => page.evaluate(`window.${name}.size ?? window.${name}`)
  await samples(1)
  await eventually(async () => (await drawn('discs')) >= 3, 'a disc in each chart', LIMIT_MS)
  await samples(450)
  await eventually(async () => (await drawn('labels')) > 10, 'labels', LIMIT_MS)
  assert.deepEqual(await page.evaluate<readonly string[]>('[...window.cut]'), [])
})

function assertEven(ticks: readonly number[]): void {
  assert.ok(ticks.length >= 3, `ticks ${ticks}`)
  const steps = ticks.toSorted((one, other) => one - other).map((tick, index, all) => tick - (all[index - 1] ?? tick))
  assert.equal(new Set(steps.slice(1)).size, 1, `ticks ${ticks}`)
}
