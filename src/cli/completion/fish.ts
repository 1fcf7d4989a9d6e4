import { type Flag, type Point, valuedNames } from '../command-tree.ts'

export function fishScript(points: readonly Point[]): string {
  return `# fish completion for millrace. Save it as ~/.config/fish/completions/millrace.fish, or load it with:
#   millrace completion fish | source
function __millrace_at
    set -l at millrace
    set -l skip 0
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case ${valuedNames(points).join(' ')}
                set skip 1
                continue
        end
        switch "$at $word"
            case ${points.flatMap(pathsOf).join(' ')}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c millrace -f
${points.flatMap(linesOf).join('\n')}`
}

function pathsOf({ path, commands }: Point): readonly string[] {
  return commands.map(({ name }) => quoted(`${path} ${name}`))
}

function linesOf({ path, commands, flags, argument }: Point): readonly string[] {
  const here = `complete -c millrace -n '__millrace_at "${path}"'`
  const lines = commands.map(({ name, summary }) => `${here} -a ${name} -d ${quoted(summary)}`)
  if (commands.length === 0 && argument?.kind === 'file') lines.push(`${here} -F`)
  if (argument?.kind === 'words') lines.push(`${here} -a ${quoted(argument.words.join(' '))}`)
  return [...lines, ...flags.map((flag) => `${here} ${flagOf(flag)}`)]
}

function flagOf({ names, summary, value }: Flag): string {
  const forms = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  const taking = value === null ? [] : value.kind === 'file' ? ['-r', '-F'] : ['-x']
  const words = value?.kind === 'words' ? ['-a', quoted(value.words.join(' '))] : []
  return [...forms, ...taking, ...words, '-d', quoted(summary)].join(' ')
}

/** In single quotes fish takes everything as it is but a backslash and the quote. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
