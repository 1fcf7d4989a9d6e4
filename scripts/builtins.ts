/**
 * How the built package gets at Node's own modules. An `import` of one makes Node read every property of it, and some
 * load as much again: `node:fs` its promises and streams, `node:util` the parser of arguments, `node:crypto` the web's
 * cryptography. `process.getBuiltinModule` gives the same module and reads only what is named.
 */
import { isBuiltin } from 'node:module'

const IMPORT = /^import (?:([\w$]+)(?:, )?)?(?:\{([^}]*)\})? from "(node:[\w/]+)";$/gm

/** Loaded by the first call, because they take milliseconds. Only functions may be imported from them. */
const ON_CALL = ['node:child_process', 'node:crypto']

/** For the output of a chunk, whose imports rolldown writes on lines of their own. */
export const directBuiltins = {
  name: 'direct-builtins',
  renderChunk: (code: string): string =>
    code.replace(IMPORT, (_line, whole: string | undefined, names: string | undefined, from: string) => {
      if (!isBuiltin(from)) throw new Error(`Node has no ${from}`)
      const got = `process.getBuiltinModule("${from}")`
      const isLater = ON_CALL.includes(from)
      const lines: string[] = []
      if (whole !== undefined && isLater)
        lines.push(`const ${whole} = new Proxy({}, { get: (_, name) => ${got}[name] });`)
      else if (whole !== undefined) lines.push(`const ${whole} = ${got};`)
      if (names !== undefined && isLater) lines.push(...names.split(',').map((name) => onCall(name.trim(), from)))
      else if (names !== undefined) lines.push(`const {${names.replaceAll(' as ', ': ')}} = ${got};`)
      return lines.join('')
    }),
}

function onCall(imported: string, from: string): string {
  const [name = '', local = name] = imported.split(' as ')
  if (typeof Reflect.get(process.getBuiltinModule(from) ?? {}, name) !== 'function')
    throw new Error(`${name} of ${from} is no function, so it cannot wait for the first call`)
  return `const ${local} = (...args) => process.getBuiltinModule("${from}").${name}(...args);`
}
