import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { JOB_STATES } from '../../src/job/states.ts'
import { runCli } from './in-process.ts'
import { temporaryFolder } from './run.ts'

const bash = spawnSync('bash', ['--version']).status === 0

describe('completion', () => {
  let script = ''
  before(async () => {
    script = (await runCli(['completion', 'bash'])).out
  })

  /** What bash would offer with the cursor at the end of the last word. */
  function offered(words: readonly string[], cwd = '/'): readonly string[] {
    const all = ['millrace', ...words].map((word) => `'${word}'`).join(' ')
    const ask = `${script}
COMP_WORDS=(${all}); COMP_CWORD=${words.length}
_millrace && ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"
exit 0`
    const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', ask], { cwd, encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
    return stdout.split('\n').filter((line) => line !== '')
  }

  it('in bash: is registered for millrace', { skip: !bash }, () => {
    const { stdout } = spawnSync('bash', ['--norc', '-c', `${script}\ncomplete -p millrace`], { encoding: 'utf8' })
    assert.match(stdout, /^complete -F _millrace millrace$/m)
  })

  it('in bash: completes commands and their commands', { skip: !bash }, () => {
    assert.deepEqual(offered(['st']), ['start', 'stats'])
    assert.deepEqual(offered(['dead', 're']), ['replay', 'replay-all'])
    assert.ok(offered(['']).includes('dead') && !offered(['']).includes('replay'))
    assert.deepEqual(offered(['jobs', 'st']), [], 'a command is not completed behind another')
  })

  it('in bash: completes options of the command, and those of every command', { skip: !bash }, () => {
    assert.deepEqual(offered(['jobs', '--st']), ['--status'])
    assert.deepEqual(offered(['dead', 'purge', '--dr']), ['--dry-run'])
    assert.deepEqual(offered(['stats', '--e']), ['--engine'])
    assert.deepEqual(offered(['stats', '--st']), [])
    assert.deepEqual(offered(['-h']), ['-h'])
  })

  it('in bash: completes fixed values, and nothing where only the user knows', { skip: !bash }, () => {
    assert.deepEqual(offered(['jobs', '--status', '']), [...JOB_STATES])
    assert.deepEqual(offered(['jobs', '--status', 'dead']), ['dead_letter'])
    assert.deepEqual(offered(['completion', '']), ['bash', 'zsh', 'fish'])
    assert.deepEqual(offered(['jobs', '--type', '']), [])
    assert.deepEqual(offered(['job', '']), [])
  })

  it('in bash: takes the value of an option for no command', { skip: !bash }, () => {
    // bash itself splits at ':' and '='.
    assert.deepEqual(offered(['--engine', 'sqlite', ':', 'dead', 'jobs', '--st']), ['--status'])
    assert.deepEqual(offered(['--engine', 'dead', 'jobs', '--st']), ['--status'])
  })

  it('in bash: completes files where modules are named', { skip: !bash }, async (t) => {
    const folder = await temporaryFolder(t)
    await mkdir(join(folder, 'jobs of mine'))
    await writeFile(join(folder, 'jobs.ts'), '')
    await writeFile(join(folder, 'other.ts'), '')
    assert.deepEqual(offered(['work', 'jobs'], folder).toSorted(), ['jobs of mine', 'jobs.ts'])
    assert.deepEqual(offered(['reap', '--jobs', 'o'], folder), ['other.ts'])
  })

  // No zsh or fish is asked here: these hold the scripts to their form, and to the same words as bash's.
  for (const shell of ['zsh', 'fish']) {
    it(`for ${shell}: knows every command and option that bash's script knows, with quotes and blocks closed`, async () => {
      const { out, code } = await runCli(['completion', shell])
      assert.equal(code, 0)
      const words = new Set(script.match(/--[a-z][a-z-]+/g))
      for (const word of words) {
        if (['--norc', '--'].includes(word)) continue
        assert.ok(out.includes(shell === 'fish' ? `-l ${word.slice(2)} ` : word), word)
      }
      for (const command of ['replay-all', 'doctor', 'completion']) assert.ok(out.includes(command), command)
      const bare = out.replace(/^#.*$/gm, '').replaceAll(`'\\''`, '').replaceAll(`\\'`, '')
      assert.equal((bare.match(/'/g) ?? []).length % 2, 0, 'quotes are paired')
      const count = (pattern: RegExp): number => (bare.replace(/'[^']*'/g, "''").match(pattern) ?? []).length
      if (shell === 'zsh') {
        assert.match(out, /^#compdef millrace\n/)
        assert.equal(count(/\bcase\b/g), count(/\besac\b/g))
        assert.equal(count(/\bdo$/gm), count(/\bdone$/gm))
      } else {
        assert.equal(count(/^\s*(?:function|for|if|switch)\b/gm), count(/^\s*end$/gm))
      }
    })
  }

  it('refuses another shell, and gives a script as JSON too', async () => {
    assert.equal((await runCli(['completion', 'cmd'])).code, 2)
    const { out } = await runCli(['completion', 'bash', '--json'])
    assert.deepEqual(JSON.parse(out), { shell: 'bash', script: script.trimEnd() })
  })
})
