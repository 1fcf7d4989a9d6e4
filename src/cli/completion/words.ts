/** What a shell can complete at each point of a command line, whatever the shell. */
import type { Argument, Command, Option } from 'commander'
import { type CommandNode, nodesOf, optionsOf } from '../walk.ts'

/** What may stand after an option, or as an argument: one of some words, a file, or something only its user knows. */
export type Value = { readonly kind: 'words'; readonly words: readonly string[] } | { readonly kind: 'file' | 'own' }

export interface Flag {
  readonly names: readonly string[]
  readonly summary: string
  /** Null for a switch. */
  readonly value: Value | null
}

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

/** Modules are the files that a command line names. */
function whatFits(choices: readonly string[] | undefined, written: string): Value {
  if (choices !== undefined) return { kind: 'words', words: choices }
  return { kind: /modules|^jobs$|file/.test(written) ? 'file' : 'own' }
}

function firstLine(command: Command): string {
  return command.summary() || command.description()
}

/** Every flag that takes a value, over all commands: what follows it is no command. */
export function valuedNames(points: readonly Point[]): readonly string[] {
  const names = points.flatMap(({ flags }) => flags.filter(({ value }) => value !== null).flatMap(({ names }) => names))
  return [...new Set(names)].toSorted()
}
