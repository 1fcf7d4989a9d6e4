/** Prometheus' own tool as the judge of rules: what fires, and just before what it does not. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { findProgram } from '../servers/apt.ts'

export const promtool = findProgram('promtool', 'prometheus')
export const skip = promtool === null ? "promtool is missing: apt-get install prometheus (Debian's package)" : false

/** Empty when the tool is content, otherwise what it says. */
export function run(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(promtool ?? '', args, { encoding: 'utf8', timeout: 300_000 })
  return status === 0 ? '' : `${stdout}${stderr}`
}

/** What the tool says of a scrape; empty when it has nothing to say. */
export function lint(scrape: string): string {
  const { stdout, stderr } = spawnSync(promtool ?? '', ['check', 'metrics'], { input: scrape, encoding: 'utf8' })
  return `${stdout}${stderr}`
}

export type Labels = Readonly<Record<string, string>>

export interface Series {
  readonly series: string
  readonly values: string
}

/** A value that stays what it is, or values in the tool's own notation. */
export function series(name: string, labels: Labels, value: number | string): Series {
  const text = Object.entries(labels).map(([label, of]) => `${label}="${of}"`)
  return { series: `${name}{${text.join(',')}}`, values: typeof value === 'number' ? `${value}x1000` : value }
}

export interface Expectation {
  readonly alert: string
  readonly atSeconds: number
  /** Labels of those that fire, without their severity. */
  readonly firing: readonly Labels[]
  readonly severity?: string
}

/** What files of rules say of series, one value every `intervalSeconds`. JSON is YAML, so the tool's tests are data. */
export async function check(
  rules: string | readonly string[],
  input: readonly Series[],
  expected: readonly Expectation[],
  intervalSeconds = 1,
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-rules-'))
  try {
    const files = [rules].flat()
    for (const file of files) {
      // Without annotations: they are text for people, and the tool would compare them too.
      const bare = readFileSync(file, 'utf8').replace(/^ {8}annotations:\n(?: {10}.*\n)+/gm, '')
      await writeFile(path.join(folder, path.basename(file)), bare)
    }
    const document = {
      rule_files: files.map((file) => path.basename(file)),
      evaluation_interval: `${intervalSeconds}s`,
      tests: [
        {
          interval: `${intervalSeconds}s`,
          input_series: input,
          alert_rule_test: expected.map(({ alert, atSeconds, firing, severity = '' }) => ({
            eval_time: `${atSeconds}s`,
            alertname: alert,
            exp_alerts: firing.map((labels) => ({ exp_labels: { severity, ...labels } })),
          })),
        },
      ],
    }
    await writeFile(path.join(folder, 'test.yml'), JSON.stringify(document))
    assert.equal(run('test', 'rules', path.join(folder, 'test.yml')), '')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Each alert of a file with its severity. */
export function alertsIn(rules: string): readonly string[] {
  const text = readFileSync(rules, 'utf8')
  return [...text.matchAll(/- alert: (\w+)[\s\S]*?severity: (\w+)/g)].map(([, name, severity]) => `${name} ${severity}`)
}
