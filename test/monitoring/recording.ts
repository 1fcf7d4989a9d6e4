/**
 * Real scrapes on the time axis of promtool, as a Prometheus that scrapes at an interval would have stored them: with
 * the labels of the scrape, with `up`, and with the end of a series marked when it is no longer in a scrape.
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { parseExposition, type Sample } from '../fixtures/exposition.ts'
import { alertsIn, check, type Expectation, type Labels, type Series, series } from './promtool.ts'

const ruleFile = (name: string): string =>
  fileURLToPath(new URL(`../../examples/monitoring/prometheus/${name}.rules.yml`, import.meta.url))
export const MILLRACE_RULES = ruleFile('millrace')
export const ESCROW_RULES = ruleFile('escrow')

/** By `instance`: the text of a scrape, or null for a target that did not answer. */
export type Scrapes = Readonly<Record<string, string | null>>

/** By name, the labels of each alert that fires, without its severity. */
export type Firing = Readonly<Record<string, readonly Labels[]>>

export interface RecordingOptions {
  /** Which files of rules judge it; each alert that is not expected must be silent. */
  readonly rules: readonly string[]
  /** Between two scrapes. */
  readonly everySeconds: number
  /** Labels of the scrape configuration by instance, such as `store`. */
  readonly labels?: Readonly<Record<string, Labels>>
}

export class Recording {
  readonly #options: RecordingOptions
  /** By series, one value for each step: a number, `_` before the first and after the last one, `stale` at the end. */
  readonly #values = new Map<string, string[]>()
  readonly #expected: { readonly atSeconds: number; readonly firing: Firing }[] = []
  #steps = 0

  constructor(options: RecordingOptions) {
    this.#options = options
  }

  /**
   * What was scraped at `nowMs` of the system's clock is the next scrape. With `forSeconds` it is every scrape for so long:
   * a system in which nothing changes. Timestamps keep their age, because a living worker goes on sending heartbeats.
   */
  add(scrapes: Scrapes, nowMs: number, forSeconds = 0): void {
    const { everySeconds } = this.#options
    const steps = Math.max(1, Math.ceil(forSeconds / everySeconds))
    for (let step = 0; step < steps; step += 1) {
      const shiftSeconds = this.#steps * everySeconds - nowMs / 1_000
      const present = new Map<string, string>()
      for (const [instance, text] of Object.entries(scrapes)) {
        for (const sample of this.#samplesOf(instance, text)) {
          const isMoment = sample.name.endsWith('_timestamp')
          const { series: key } = series(sample.name, sample.labels, 0)
          present.set(key, String(isMoment ? sample.value + shiftSeconds : sample.value))
        }
      }
      this.#append(present)
    }
  }

  #samplesOf(instance: string, text: string | null): readonly Sample[] {
    const target = { job: 'millrace', instance, ...this.#options.labels?.[instance] }
    const found = text === null ? [] : [...parseExposition(text).values()].flatMap(({ samples }) => samples)
    const up = { name: 'up', labels: {}, value: text === null ? 0 : 1 }
    return [...found, up].map(({ name, labels, value }) => ({ name, value, labels: { ...labels, ...target } }))
  }

  #append(present: ReadonlyMap<string, string>): void {
    for (const key of present.keys())
      if (!this.#values.has(key)) this.#values.set(key, Array<string>(this.#steps).fill('_'))
    for (const [key, values] of this.#values) {
      const last = values.at(-1)
      const isGone = last === undefined || last === '_' || last === 'stale'
      values.push(present.get(key) ?? (isGone ? '_' : 'stale'))
    }
    this.#steps += 1
  }

  /** At the last scrape exactly these alerts fire, of all rules. */
  expect(firing: Firing): void {
    assert.ok(this.#steps > 0, 'nothing has been scraped')
    this.#expected.push({ atSeconds: (this.#steps - 1) * this.#options.everySeconds, firing })
  }

  /** How long it is. */
  get seconds(): number {
    return this.#steps * this.#options.everySeconds
  }

  async judge(): Promise<void> {
    const { rules, everySeconds } = this.#options
    const alerts = rules.flatMap(alertsIn).map((line) => line.split(' '))
    const known = new Set(alerts.map(([name = '']) => name))
    const expected = this.#expected.flatMap(({ atSeconds, firing }): readonly Expectation[] => {
      for (const name of Object.keys(firing)) assert.ok(known.has(name), `there is no alert ${name}`)
      return alerts.map(([alert = '', severity = '']) => ({ alert, severity, atSeconds, firing: firing[alert] ?? [] }))
    })
    assert.ok(expected.length > 0, 'nothing is expected')
    await check(rules, this.#input(), expected, everySeconds)
  }

  #input(): readonly Series[] {
    return [...this.#values].map(([key, values]) => ({ series: key, values: values.join(' ') }))
  }
}
