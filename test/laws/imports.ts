/** What a file imports: static imports and re-exports, and dynamic ones apart. */
import path from 'node:path'
import type { SourceFile } from './source.ts'

export interface Import {
  readonly from: string
  /** A file of the project from its root, or a package or node: name as it is written. */
  readonly to: string
  readonly kind: 'static' | 'dynamic'
}

const STATIC = /(?:^|\n)\s*(?:import|export)\b[^'"();]*?['"]/g
const DYNAMIC = /\bimport\(\s*['"]/g

export function importsOf(file: SourceFile): readonly Import[] {
  return [...found(file, STATIC, 'static'), ...found(file, DYNAMIC, 'dynamic')]
}

/** The blanked code shows where a specifier stands, the text what it is. */
function found(file: SourceFile, pattern: RegExp, kind: Import['kind']): readonly Import[] {
  return [...file.code.matchAll(pattern)].flatMap((match) => {
    const start = match.index + match[0].length
    const specifier = /^[^'"\n]+/.exec(file.text.slice(start))?.[0]
    // `export const a = 'b'` is no import: between the word and the specifier stands nothing but names.
    if (specifier === undefined || /=/.test(match[0])) return []
    return [{ from: file.path, to: resolve(file.path, specifier), kind }]
  })
}

function resolve(from: string, specifier: string): string {
  return specifier.startsWith('.') ? path.posix.join(path.posix.dirname(from), specifier) : specifier
}

/** The layer a file belongs to: a folder of src/, one engine, a file at its top, or another folder of the project. */
export function layerOf(file: string): string {
  const [top = '', second = '', third = ''] = file.split('/')
  if (top !== 'src') return top
  return second === 'engines' ? `engines/${third}` : second
}
