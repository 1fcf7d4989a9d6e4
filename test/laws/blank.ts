/** One token that is not code, at the place where the search stands. A template's text ends at its `${` or its end. */
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y
const REGEXP = /\/(?![*/])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
const TEMPLATE_TEXT = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y
/** What a regular expression may follow; after anything else a slash divides. */
const BEFORE_REGEXP = /(?:[(,=:[!&|?{};>]|\breturn|\bcase)\s*$/

const spaces = (part: string): string => part.replace(/[^\n]/g, ' ')

/**
 * Blanks comments, regular expressions and the insides of strings and templates, so that a search finds code only.
 * Every line and column stays where it is. What stands in a template's `${…}` is code.
 */
export function blank(text: string): string {
  /** Open braces of each template hole that surrounds the place, the innermost last. */
  const holes: number[] = []
  let result = ''
  let at = 0
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at
    return pattern.exec(text)?.[0] ?? null
  }
  const keep = (length: number): void => {
    result += text.slice(at, at + length)
    at += length
  }
  const hide = (part: string, edge: number): void => {
    result += part.slice(0, edge) + spaces(part.slice(edge, part.length - edge)) + part.slice(part.length - edge)
    at += part.length
  }
  const template = (): void => {
    const part = take(TEMPLATE_TEXT) ?? text.slice(at)
    const endsInHole = part.endsWith('${')
    if (endsInHole) holes.push(0)
    result += spaces(part.slice(0, endsInHole ? -2 : -1)) + part.slice(endsInHole ? -2 : -1)
    at += part.length
  }
  while (at < text.length) {
    const sign = text.charAt(at)
    const comment = sign === '/' ? take(COMMENT) : null
    const regexp = sign === '/' && comment === null && BEFORE_REGEXP.test(result.slice(-20)) ? take(REGEXP) : null
    const string = sign === "'" || sign === '"' ? take(STRING) : null
    if (comment !== null) hide(comment, 0)
    else if (regexp !== null) hide(regexp, 0)
    else if (string !== null) hide(string, 1)
    else if (sign === '`') {
      keep(1)
      template()
    } else if (sign === '}' && holes.at(-1) === 0) {
      holes.pop()
      keep(1)
      template()
    } else {
      const last = holes.length - 1
      if (last >= 0 && (sign === '{' || sign === '}')) holes[last] = (holes[last] ?? 0) + (sign === '{' ? 1 : -1)
      keep(1)
    }
  }
  return result
}
