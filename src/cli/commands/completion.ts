import { Argument, type Command } from 'commander'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { type Point, pointsOf, treeOf } from '../command-tree.ts'
import { bashScript } from '../completion/bash.ts'
import { fishScript } from '../completion/fish.ts'
import { zshScript } from '../completion/zsh.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

const SCRIPTS: Readonly<Record<Shell, (points: readonly Point[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

export function addCompletion(program: Command, { terminal }: Cli): void {
  program
    .command('completion')
    .summary('print a completion script for your shell')
    .description('Print a script that lets your shell complete commands, options and their fixed values.')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      examples([
        ['source <(millrace completion bash)', 'in this shell; add the line to ~/.bashrc to keep it'],
        ['millrace completion zsh > ~/.zfunc/_millrace', 'into a folder of your fpath, before compinit'],
        ['millrace completion fish > ~/.config/fish/completions/millrace.fish', 'for every fish session'],
      ]),
    )
    .action((shell: Shell, _options, command: Command) => {
      const script = SCRIPTS[shell](pointsOf(treeOf(program)))
      const { json } = command.optsWithGlobals<SharedOptions>()
      terminal.print(json ? JSON.stringify({ shell, script }) : script)
    })
}
