import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { packageRoot } from '../engine/package-info.ts'
import { RUNBOOK } from '../observe/alerts/runbook.ts'
import { runbookPage } from './runbook-page.ts'

test('the runbook is a page with an anchor for each entry, its commands as they are, and no markup of Markdown', async () => {
  const answer = await runbookPage()
  assert.ok(answer)
  assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
  const html = await answer.text()
  const markdown = readFileSync(join(packageRoot() ?? '', RUNBOOK), 'utf8')
  const headings = [...markdown.matchAll(/^## (.*)$/gm)].map(([, title = '']) => title)
  assert.ok(headings.length >= 20)
  for (const title of headings) assert.ok(html.includes(`<h2 id="${title.toLowerCase()}">${title}</h2>`), title)
  assert.ok(html.includes('<pre>millrace health\nmillrace doctor\nmillrace dead list --groups</pre>'))
  assert.ok(html.includes('<a href="#noworkers">NoWorkers</a>'))
  assert.doesNotMatch(html, /```|\*\*|\]\(|<script|style=/)
})
