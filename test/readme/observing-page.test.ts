import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { METRIC_NAMES } from '../../src/observe/metrics/names.ts'
import { ROOT } from './blocks.ts'

test('the page of metrics maps every name of the documents to the one in a scrape', () => {
  const page = readFileSync(path.join(ROOT, 'docs/observing.md'), 'utf8')
  const rows = [...page.matchAll(/^\| (\w+) \| `millrace_(\w+)(?:\{[\w,]+\})?` \| .+ \|$/gm)]
  assert.deepEqual(Object.fromEntries(rows.map(([, name, scraped]) => [name, scraped])), METRIC_NAMES)
})
