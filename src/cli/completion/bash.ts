import { type Point, type Value, valuedNames } from '../command-tree.ts'

/** Words of the program are letters, digits and dashes, so they need no quoting. */
export function bashScript(points: readonly Point[]): string {
  return `# bash completion for millrace. Load it with: source <(millrace completion bash)
_millrace() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at=millrace word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case $word in
      # bash splits words at these; the part after one belongs to the word before.
      : | =) ((i++)); continue ;;
      ${valuedNames(points).join(' | ')}) ((i++)); continue ;;
    esac
    case "$at $word" in
${points.flatMap(stepsOf).join('\n')}
    esac
  done
  case "$at $previous" in
${points.flatMap(valuesOf).join('\n')}
  esac
  if [[ $current == -* ]]; then
    case $at in
${points.map(flagsOf).join('\n')}
    esac
    return
  fi
  case $at in
${points.flatMap(argumentsOf).join('\n')}
  esac
}
_millrace_words() {
  COMPREPLY=($(compgen -W "$1" -- "$current"))
}
_millrace_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _millrace millrace`
}

function stepsOf({ path, commands }: Point): readonly string[] {
  return commands.map(({ name }) => `      '${path} ${name}') at='${path} ${name}' ;;`)
}

function valuesOf({ path, flags }: Point): readonly string[] {
  return flags.flatMap(({ names, value }) => {
    if (value === null) return []
    return [
      `    ${names.map((name) => `'${path} ${name}'`).join(' | ')}) ${[offer(value), 'return'].join(' ').trim()} ;;`,
    ]
  })
}

function offer(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `_millrace_words '${value.words.join(' ')}';`
    case 'file':
      return '_millrace_files;'
    case 'own':
      return ''
    default:
      value satisfies never
      return ''
  }
}

function flagsOf({ path, flags }: Point): string {
  return `      '${path}') _millrace_words '${flags.flatMap(({ names }) => names).join(' ')}' ;;`
}

function argumentsOf({ path, commands, argument }: Point): readonly string[] {
  if (commands.length > 0) return [`    '${path}') _millrace_words '${commands.map(({ name }) => name).join(' ')}' ;;`]
  if (argument === null || argument.kind === 'own') return []
  return [`    '${path}') ${offer(argument)} ;;`]
}
