/** Every alert that the package ships, found in its sources, so that a new one is found too. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { AlertRule } from 'millrace/observe'
import { ROOT } from '../cli/run.ts'
import { alertsIn } from './promtool.ts'

export interface ShippedAlert {
  readonly name: string
  readonly severity: string
  /** Where it says that its entry is; null where it says nothing. */
  readonly runbook: string | null
  readonly source: string
}

const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8')
const SOURCES = globSync('{src,workloads}/**/*.ts', { cwd: ROOT, exclude: ['**/*.test.ts'] }).toSorted()

export function prometheusAlerts(): readonly ShippedAlert[] {
  return globSync('examples/monitoring/**/*.rules.yml', { cwd: ROOT }).flatMap((file) => {
    const blocks = read(file).split(/^ *- (?=alert: )/m)
    return alertsIn(path.join(ROOT, file)).map((alert, index) => {
      const [name = '', severity = ''] = alert.split(' ')
      const [, runbook = null] =
        /runbook_url: "\{\{ \$externalLabels\.runbooks \}\}(\S+)"/.exec(blocks[index + 1] ?? '') ?? []
      return { name, severity, runbook, source: file }
    })
  })
}

/** What functions that make rules must be given; others are called without arguments. */
const ARGUMENTS: Readonly<Record<string, unknown>> = {
  healthRules: { critical: ['data-deletion'] },
  watchRules: { lagLimits: () => null, isFinancial: () => false },
}

const MAKER = /export function (\w+)\([^)]*\): readonly AlertRule/g

export async function builtInRules(): Promise<readonly ShippedAlert[]> {
  const makers = SOURCES.flatMap((source) =>
    [...read(source).matchAll(MAKER)].map(([, name = '']) => ({ source, name })),
  )
  const found = makers.map(async ({ source, name }) => {
    const make: unknown = Reflect.get(await import(path.join(ROOT, source)), name)
    assert.ok(typeof make === 'function')
    const rules: readonly AlertRule[] = make(ARGUMENTS[name])
    return rules.map((rule) => ({ name: rule.name, severity: rule.severity, runbook: rule.runbook ?? null, source }))
  })
  return (await Promise.all(found)).flat()
}

/** Files that define rules: each must give them a runbook, also where no function returns them. */
export function filesWithRules(): readonly { readonly source: string; readonly hasRunbook: boolean }[] {
  return SOURCES.filter((source) => /\bAlertRule\b/.test(read(source)) && /\bevaluate(?:\(|: \()/.test(read(source)))
    .filter((source) => !source.startsWith('src/observe/alerts/') || source.endsWith('-rules.ts'))
    .map((source) => ({ source, hasRunbook: /\brunbook: runbookEntry\(/.test(read(source)) }))
}

/** Alerts for a single event, which go to an `Alerter` without a rule: their names are literals. */
export function singleAlerts(): readonly {
  readonly name: string
  readonly source: string
  readonly hasRunbook: boolean
}[] {
  return SOURCES.filter((source) => /\bAlert(?:Message|er)\b/.test(read(source))).flatMap((source) => {
    const text = read(source)
    return [...text.matchAll(/^ +rule: (.*'.*),$/gm)].flatMap(([, literals = '']) =>
      [...literals.matchAll(/'(\w+)'/g)].map(([, name = '']) => ({
        name,
        source,
        hasRunbook: /\brunbook\b/.test(text),
      })),
    )
  })
}
