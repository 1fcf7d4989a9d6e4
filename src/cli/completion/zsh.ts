import { type Flag, type Point, type Value, valuedNames } from '../command-tree.ts'

export function zshScript(points: readonly Point[]): string {
  return `#compdef millrace
# zsh completion for millrace. Put it into a folder of your fpath as _millrace, or load it with:
#   source <(millrace completion zsh)
_millrace() {
  local at=millrace word current=\${words[CURRENT]} previous=\${words[CURRENT-1]}
  local -a found
  local -i i
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    case $word in
      (${valuedNames(points).join('|')}) ((i++)); continue ;;
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
    _describe -o option found
    return
  fi
  case $at in
${points.flatMap(argumentsOf).join('\n')}
  esac
}
if [[ \${funcstack[1]} == _millrace ]]; then
  _millrace "$@"
else
  compdef _millrace millrace
fi`
}

function stepsOf({ path, commands }: Point): readonly string[] {
  return commands.map(({ name }) => `      ('${path} ${name}') at='${path} ${name}' ;;`)
}

function valuesOf({ path, flags }: Point): readonly string[] {
  return flags.flatMap(({ names, value }) => {
    if (value === null) return []
    return [
      `    (${names.map((name) => `'${path} ${name}'`).join('|')}) ${[offer(value), 'return'].join(' ').trim()} ;;`,
    ]
  })
}

function offer(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `compadd -- ${value.words.join(' ')};`
    case 'file':
      return '_files;'
    case 'own':
      return ''
    default:
      value satisfies never
      return ''
  }
}

function flagsOf({ path, flags }: Point): string {
  return `      ('${path}') found=(${flags.flatMap(described).join(' ')}) ;;`
}

function described({ names, summary }: Flag): readonly string[] {
  return names.map((name) => entry(name, summary))
}

/** `_describe` takes what stands before the first colon as the word. */
function entry(word: string, summary: string): string {
  return `'${word}:${summary.replaceAll("'", `'\\''`).replaceAll(':', '\\:')}'`
}

function argumentsOf({ path, commands, argument }: Point): readonly string[] {
  if (commands.length > 0) {
    const entries = commands.map(({ name, summary }) => entry(name, summary))
    return [`    ('${path}') found=(${entries.join(' ')}); _describe command found ;;`]
  }
  if (argument === null || argument.kind === 'own') return []
  return [`    ('${path}') ${offer(argument)} ;;`]
}
