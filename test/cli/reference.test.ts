import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { documentCommands } from '../../scripts/cli-reference.ts'
import { ROOT } from './run.ts'

test('docs/cli.md is what the commands say', async () => {
  const isCurrent = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8') === (await documentCommands())
  assert.ok(isCurrent, 'docs/cli.md is out of date; run npm run cli-reference')
})

test('the page has the options, arguments and examples of a command', async () => {
  const page = await documentCommands()
  const [, purge = ''] = page.split('\n### millrace dead purge\n')
  assert.match(purge, /\| `--dry-run` \| only count them \|/)
  assert.match(purge, /\| `ids` \| their ids; or give a filter \|/)
  assert.match(purge, /^millrace dead purge 01K5X….* {2}# one, of any type$/m)
  assert.match(page, /\| `--status <state>` \| only jobs in this state \(choices: "queued"/)
  assert.match(page, /MILLRACE_ENGINE/)
})
