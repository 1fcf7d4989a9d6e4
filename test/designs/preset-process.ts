/** A preset as its user starts it: one command in a process of its own, seen through its log and its HTTP server. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { jsonLines, MAIN, Running, until } from '../cli/run.ts'
import { sampleValue } from '../fixtures/exposition.ts'
import { lint, promtool } from '../monitoring/promtool.ts'

export interface LogFields extends Readonly<Record<string, unknown>> {
  readonly msg?: string
}

export class PresetProcess {
  readonly running: Running

  constructor(t: TestContext, args: readonly string[], settings: ConstructorParameters<typeof Running>[2] = {}) {
    const port = args.includes('--no-http') ? [] : ['--port', '0']
    this.running = new Running(MAIN, ['start', ...args, '--json', ...port], settings)
    t.after(() => this.running.child.kill('SIGKILL'))
  }

  /** Resolves when it works. */
  async started(): Promise<void> {
    await this.running.said('To try it')
  }

  get lines(): readonly LogFields[] {
    return jsonLines(this.running.output.slice(0, this.running.output.lastIndexOf('\n') + 1))
  }

  /** The first line that the condition holds for. */
  async line(holds: (line: LogFields) => boolean): Promise<LogFields> {
    let found: LogFields | undefined
    await until(() => {
      found = this.lines.find(holds)
      return found !== undefined
    })
    return found ?? assert.fail('it was found')
  }

  async fetch(path: string, body?: unknown): Promise<Response> {
    const url = /"url":"([^"]+)"/.exec(this.running.output)?.[1] ?? assert.fail('it does not serve')
    if (body === undefined) return fetch(`${url}${path}`)
    const headers = { 'content-type': 'application/json' }
    return fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  async answer(path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await this.fetch(path, body)
    assert.ok(response.status < 500, `${path}: ${response.status}`)
    return Object(await response.json())
  }

  /** The value of one series of its scrape, which Prometheus' own tool has nothing to say about. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | null> {
    const scrape = await (await this.fetch('/metrics')).text()
    if (promtool !== null) assert.equal(lint(scrape), '')
    return sampleValue(scrape, name, labels)
  }

  /** Without a goodbye, as a machine that is switched off. */
  async lose(): Promise<void> {
    this.running.child.kill('SIGKILL')
    assert.equal((await this.running.ended).signal, 'SIGKILL')
  }

  async stop(): Promise<void> {
    this.running.child.kill('SIGTERM')
    const { code, err } = await this.running.ended
    assert.deepEqual([code, err], [0, ''])
  }
}

/** Moves the end of a lease to now: what a minute without a sign of its worker does. */
export function endLeases(file: string, type: string): void {
  const database = new DatabaseSync(file)
  try {
    database.exec('PRAGMA busy_timeout = 5000')
    const past = new Date(Date.now() - 1_000).toISOString()
    const { changes } = database
      .prepare(`UPDATE job_queue SET lease_until = ? WHERE status = 'in_progress' AND type = ?`)
      .run(past, type)
    assert.equal(Number(changes), 1)
  } finally {
    database.close()
  }
}

export async function writeConfig(folder: string, config: object): Promise<string> {
  const file = join(folder, 'config.json')
  await writeFile(file, JSON.stringify(config))
  return file
}
