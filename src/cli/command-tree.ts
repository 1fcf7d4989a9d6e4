/** The commander program as data, for completion scripts, the reference page and tests. */
import type { Argument, Command, Option } from 'commander'

export interface CommandNode {
  /** Such as ['dead', 'list']; empty for the program itself. */
  readonly path: readonly string[]
  readonly command: Command
  readonly children: readonly CommandNode[]
}

export function treeOf(command: Command, path: readonly string[] = []): CommandNode {
  const children = command.commands
    .filter((child) => !isHidden(child))
    .map((child) => treeOf(child, [...path, child.name()]))
  return { path, command, children }
}

/** Commander has no typed access to it. */
function isHidden(command: Command): boolean {
  return Reflect.get(command, '_hidden') === true
}

/** All nodes, parents before their children. */
export function nodesOf(node: CommandNode): readonly CommandNode[] {
  return [node, ...node.children.flatMap(nodesOf)]
}

/** Commands without subcommands. */
export function leavesOf(root: CommandNode): readonly CommandNode[] {
  return nodesOf(root).filter(({ children }) => children.length === 0)
}

/** The command's options, then the shared ones. */
export function optionsOf(command: Command): readonly Option[] {
  const visible = (of: Command): readonly Option[] => of.options.filter((option) => !option.hidden)
  return command.parent === null ? visible(command) : [...visible(command), ...sharedOptions(command.parent)]
}

function sharedOptions(parent: Command): readonly Option[] {
  const own = parent.options.filter((option) => !option.hidden && option.long !== '--version')
  return parent.parent === null ? own : [...own, ...sharedOptions(parent.parent)]
}

/** The text of `addHelpText('after', …)`: examples and remarks. */
export function textAfter(command: Command): string {
  const { writeOut } = command.configureOutput()
  const written: string[] = []
  command.configureOutput({ writeOut: (text) => void written.push(text) })
  command.outputHelp()
  if (writeOut !== undefined) command.configureOutput({ writeOut })
  // The first piece is the help itself.
  return written.slice(1).join('').trim()
}

export interface Example {
  readonly line: string
  readonly meaning: string
}

const EXAMPLE = /^ {2}(.*?\S) {3,}(\S.*)$/

export function teachingOf(command: Command): { readonly examples: readonly Example[]; readonly remarks: string } {
  const examples: Example[] = []
  const remarks: string[] = []
  let isExample = false
  for (const row of textAfter(command).split('\n')) {
    const found = isExample ? EXAMPLE.exec(row) : null
    if (row === 'Examples:') isExample = true
    else if (found !== null) examples.push({ line: found[1] ?? '', meaning: found[2] ?? '' })
    else {
      isExample = false
      remarks.push(row)
    }
  }
  return { examples, remarks: remarks.join('\n').trim() }
}

/** The value of an option or argument: one of some words, a file, or anything (`own`). */
export type Value = { readonly kind: 'words'; readonly words: readonly string[] } | { readonly kind: 'file' | 'own' }

export interface Flag {
  readonly names: readonly string[]
  readonly summary: string
  /** Null for a flag without a value. */
  readonly value: Value | null
}

/** What a shell can complete after one command. */
export interface Point {
  /** 'millrace' for the program, 'millrace dead list' for a command. */
  readonly path: string
  readonly commands: readonly { readonly name: string; readonly summary: string }[]
  readonly flags: readonly Flag[]
  readonly argument: Value | null
}

export function pointsOf(root: CommandNode): readonly Point[] {
  const name = root.command.name()
  return nodesOf(root).map((node) => ({
    path: [name, ...node.path].join(' '),
    commands: node.children.map(({ command }) => ({ name: command.name(), summary: firstLine(command) })),
    flags: [...optionsOf(node.command).map(toFlag), HELP],
    argument: argumentOf(node.command),
  }))
}

const HELP: Flag = { names: ['-h', '--help'], summary: 'show this help', value: null }

function toFlag(option: Option): Flag {
  const names = [option.short, option.long].filter((name) => name !== undefined)
  const takesValue = option.required || option.optional
  const value = takesValue ? whatFits(option.argChoices, option.flags) : null
  return { names, summary: option.description, value }
}

function argumentOf(command: Command): Value | null {
  const [argument] = command.registeredArguments as readonly Argument[]
  return argument === undefined ? null : whatFits(argument.argChoices, argument.name())
}

function whatFits(choices: readonly string[] | undefined, written: string): Value {
  if (choices !== undefined) return { kind: 'words', words: choices }
  return { kind: /modules|^jobs$|file/.test(written) ? 'file' : 'own' }
}

function firstLine(command: Command): string {
  return command.summary() || command.description()
}

/** The flags of all commands that take a value: the word after one is not a command. */
export function valuedNames(points: readonly Point[]): readonly string[] {
  const names = points.flatMap(({ flags }) => flags.filter(({ value }) => value !== null).flatMap(({ names }) => names))
  return [...new Set(names)].toSorted()
}
