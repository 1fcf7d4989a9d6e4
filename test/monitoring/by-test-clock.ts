/**
 * What `millrace start` and `millrace serve` run, in this process and by the clock of a test: the same serving, the same
 * alert rules, scraped and asked over HTTP. For rules about minutes and hours.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { extensions } from '../../bin/extensions.ts'
import { serveAll } from '../../src/cli/commands/serve.ts'
import { type Mill, open } from '../../src/client/mill.ts'
import type { AnyJob } from '../../src/job/definition.ts'
import type { AlertRule } from '../../src/observe/alerts/rule.ts'
import { silentLog } from '../../src/observe/log.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import type { TestClock } from '../../src/testing/test-clock.ts'
import { quietTerminal } from '../cli/in-process.ts'
import { builtInAlerts, expectedOfBuiltIn } from './built-in.ts'
import { type Firing, Recording, type RecordingOptions } from './recording.ts'
import { textOf } from './stores.ts'

export interface ClockedOptions {
  readonly clock: TestClock
  /** Those whose dead letters are told apart as critical ones; handlers are of no matter here. */
  readonly jobs?: readonly AnyJob[]
  /** Beside those that every process has. */
  readonly alertRules?: readonly AlertRule[]
}

export interface Clocked {
  readonly mill: Mill
  readonly address: string
  close(): Promise<void>
}

/** Serves a mill. The caller starts workers on it, or none. */
export async function serveByTestClock(
  t: TestContext,
  engine: string,
  { clock, jobs = [], alertRules = [] }: ClockedOptions,
): Promise<Clocked> {
  const mill = await open(engine, { clock, random: seededRandom(1), log: silentLog })
  const said: string[] = []
  const terminal = quietTerminal((line) => said.push(line))
  const flags = { engine, json: true, port: 0, host: '127.0.0.1' } as const
  const serving = await serveAll({ terminal, clock, extensions }, flags)(mill, { jobs, log: silentLog, alertRules })
  const { url }: { url: string } = JSON.parse(said[0] ?? '{}')
  let isOpen = true
  const close = async (): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    await serving.close()
    await closed(mill.close(), clock)
  }
  t.after(close)
  return { mill, address: url, close }
}

/** Moves the clock for as long as something needs time to end. */
async function closed(ending: Promise<void>, clock: TestClock): Promise<void> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  ending.then(over, over)
  while (!isOver) await clock.advance('1s')
  await ending
}

/** Several of them, scraped together at every step of the clock. */
export class ClockedStory {
  readonly #recording: Recording
  readonly #everySeconds: number
  readonly #clock: TestClock
  /** By instance; null is down. */
  readonly targets: Record<string, Clocked | null> = {}

  constructor(clock: TestClock, options: RecordingOptions) {
    this.#clock = clock
    this.#everySeconds = options.everySeconds
    this.#recording = new Recording(options)
  }

  /** Lets time pass and scrapes meanwhile. */
  async pass(minutes: number): Promise<void> {
    for (let left = minutes * 60; left > 0; left -= this.#everySeconds) {
      await this.#clock.advance(this.#everySeconds * 1_000)
      await this.scrape()
    }
  }

  async scrape(): Promise<void> {
    const scraped = await Promise.all(
      Object.entries(this.targets).map(
        async ([instance, target]) =>
          [instance, target === null ? null : await textOf(`${target.address}/metrics`)] as const,
      ),
    )
    this.#recording.add(Object.fromEntries(scraped), this.#clock.nowMs())
  }

  /** At the last scrape exactly these fire, and the rules built into `judges` say the same of what both know. */
  async expect(firing: Firing, judges: readonly Clocked[]): Promise<void> {
    this.#recording.expect(firing)
    for (const { address } of judges)
      assert.deepEqual(
        await builtInAlerts(address),
        expectedOfBuiltIn(firing),
        `built in, after ${this.#recording.seconds} s`,
      )
  }

  judge(): Promise<void> {
    return this.#recording.judge()
  }
}
