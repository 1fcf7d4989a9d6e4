import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { extensions } from '../../bin/extensions.ts'
import { leavesOf, nodesOf, optionsOf, teachingOf, treeOf } from '../../src/cli/command-tree.ts'
import { buildProgram } from '../../src/cli/program.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import { systemClock } from '../../src/time/clock.ts'
import { runCli } from './in-process.ts'

const terminal: Terminal = {
  out: new PassThrough(),
  columns: null,
  print: () => {},
  complain: () => {},
  paint: (_style, text) => text,
  flush: async () => {},
  outliveReader: () => {},
  lostReader: false,
}
const root = treeOf(await buildProgram({ terminal, clock: systemClock, extensions }))
const nodes = nodesOf(root).filter(({ path }) => path.length > 0)
const leaves = leavesOf(root)

/** The last word of a command that takes work, or the record of it, away from somebody. */
const DESTROYS = /^(cancel|discard|forget|purge|replay-all|clean|remove|unschedule|delete|prune|vacuum|reset|migrate)$/

describe('every command', () => {
  it('was really walked', () => {
    const paths = leaves.map(({ path }) => path.join(' '))
    assert.ok(leaves.length >= 20, paths.join(', '))
    for (const path of ['jobs', 'dead purge', 'top', 'completion']) assert.ok(paths.includes(path), path)
    assert.ok(!paths.includes('dead'), 'dead is no leaf')
  })

  for (const { path, command } of nodes) {
    const name = path.join(' ')
    it(`${name}: says what it is for, in a line for the list and a sentence for its help`, () => {
      assert.ok(command.summary(), `give '${name}' a .summary('…') for the list of commands`)
      assert.match(command.description(), /^[A-Z].*\.$/s, `give '${name}' a .description('…') of whole sentences`)
    })

    it(`${name}: teaches by an example of itself`, () => {
      const { examples } = teachingOf(command)
      // A default is what its parent does when no command is named.
      const isDefault = command.parent !== null && Reflect.get(command.parent, '_defaultCommandName') === path.at(-1)
      const typed = `millrace ${isDefault ? path.slice(0, -1).join(' ') : name}`
      const own = examples.filter(({ line }) => line.includes(typed))
      assert.ok(own.length > 0, `add .addHelpText('after', examples([['millrace ${name} …', 'what it does']]))`)
    })
  }

  for (const { path, command } of leaves) {
    const name = path.join(' ')
    const flags = optionsOf(command).map(({ long }) => long)
    it(`${name}: takes --engine and --json${DESTROYS.test(path.at(-1) ?? '') ? ', and --dry-run' : ''}`, () => {
      for (const flag of ['--engine', '--json']) assert.ok(flags.includes(flag), `'${name}' has no ${flag}`)
      if (!DESTROYS.test(path.at(-1) ?? '')) return
      assert.ok(
        flags.includes('--dry-run'),
        `'${name}' destroys; add .option('--dry-run', 'only say what would happen')`,
      )
    })

    it(`${name}: describes each of its options and arguments`, () => {
      const undescribed = [
        ...optionsOf(command).filter(({ description }) => description === ''),
        ...command.registeredArguments.filter(({ description }) => description === ''),
      ]
      assert.deepEqual(
        undescribed.map((one) => one.name()),
        [],
      )
    })

    it(`${name}: shows the default of a duration as users write it`, () => {
      const raw = optionsOf(command).filter(
        ({ flags, defaultValue, defaultValueDescription }) =>
          flags.includes('<duration>') &&
          defaultValue !== undefined &&
          !/^\d+(?:ms|[smhd])$/.test(defaultValueDescription ?? ''),
      )
      assert.deepEqual(
        raw.map(({ flags }) => flags),
        [],
      )
    })

    it(`${name}: shows its examples with --help and exit 0`, async () => {
      const { code, out, err } = await runCli([...path, '--help'])
      assert.deepEqual([code, err], [0, ''])
      for (const { line } of teachingOf(command).examples) assert.ok(out.includes(line), line)
    })
  }

  for (const name of ['start', 'work', 'keep', 'serve']) {
    it(`${name}: says what a second signal and SIGHUP do`, () => {
      const { remarks } = teachingOf(leaves.find(({ path }) => path.join(' ') === name)?.command ?? assert.fail())
      assert.match(remarks, /second signal/)
      assert.match(remarks, /SIGHUP/)
    })
  }
})
