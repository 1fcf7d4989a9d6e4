/** Reads a pattern into an automaton without backtracking (Glushkov's): one position for each character, and edges between them. */
import { OptionError } from '../../../src/errors.ts'

export type CodeSet = (code: number) => boolean

/** Part of a pattern: which positions can come first and last, and whether it can be empty. */
export interface Part {
  readonly first: readonly number[]
  readonly last: readonly number[]
  readonly empty: boolean
}

const POSITIONS_MAX = 256
/** Each character of a text costs at most one step per edge. */
const EDGES_MAX = 2_048
const NOTHING: Part = { first: [], last: [], empty: true }

let beyondAscii: RegExp | undefined
/** Made when it is first needed: it takes milliseconds, and the hook loads this file each time. */
function wordBeyondAscii(): RegExp {
  beyondAscii ??= /[\p{L}\p{N}]/u
  return beyondAscii
}
const isDigit: CodeSet = (code) => code >= 48 && code <= 57
const isSpace: CodeSet = (code) =>
  code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0x2028 || code === 0x2029
export const isWord: CodeSet = (code) =>
  code < 128
    ? isDigit(code) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95
    : wordBeyondAscii().test(String.fromCharCode(code))
const not =
  (set: CodeSet): CodeSet =>
  (code) =>
    !set(code)
const SETS: Readonly<Record<string, CodeSet>> = {
  ...{ d: isDigit, D: not(isDigit), w: isWord, W: not(isWord), s: isSpace, S: not(isSpace) },
}
const CONTROL: Readonly<Record<string, number>> = { t: 9, n: 10, r: 13, f: 12, v: 11 }

/** Without the `\b` at the two ends of the whole pattern. */
export class PatternReader {
  readonly sets: CodeSet[] = []
  readonly follow: Set<number>[] = []
  readonly #source: string
  readonly #ignoreCase: boolean
  #at = 0
  #edges = 0

  constructor(source: string, ignoreCase: boolean) {
    this.#source = source
    this.#ignoreCase = ignoreCase
  }

  whole(): Part {
    const part = this.#alternatives()
    if (this.#at < this.#source.length) throw this.#refused(`')' has no '('`)
    return part
  }

  #alternatives(): Part {
    let part = this.#sequence()
    while (this.#source[this.#at] === '|') {
      this.#at++
      const other = this.#sequence()
      part = {
        first: [...part.first, ...other.first],
        last: [...part.last, ...other.last],
        empty: part.empty || other.empty,
      }
    }
    return part
  }

  #sequence(): Part {
    let part = NOTHING
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] ?? '')) {
      part = this.#then(part, this.#repeated())
    }
    return part
  }

  /** An atom with `?`, `*`, `+` or `{n,m}`, which is written out. */
  #repeated(): Part {
    const from = this.#at
    const once = this.#atom()
    const [min, max] = this.#quantifier()
    if ('?*+{'.includes(this.#source[this.#at] ?? ' ')) {
      throw this.#refused('a quantifier follows a quantifier; a match is always the longest, and nothing is lazy')
    }
    const behind = this.#at
    const again = () => {
      this.#at = from
      return this.#atom()
    }
    let part = min === 0 ? { ...once, empty: true } : once
    for (let count = 1; count < min; count++) part = this.#then(part, again())
    if (max === Number.POSITIVE_INFINITY) {
      const loop = min > 1 ? again() : part
      this.#connect(loop.last, loop.first)
      if (min > 1) part = this.#then(part, { ...loop, empty: true })
    } else {
      // Each further copy can only follow the one before it: a{1,64} has 63 edges, not 2016.
      let last = part.last
      for (let count = Math.max(min, 1); count < max; count++) {
        const copy = again()
        this.#connect(last, copy.first)
        last = copy.last
        part = { ...part, last: [...part.last, ...last] }
      }
    }
    this.#at = behind
    return max === 0 ? NOTHING : part
  }

  #quantifier(): readonly [min: number, max: number] {
    const [written = '', fixed, comma, upper] =
      /^(?:[?*+]|\{(\d{1,3})(,?)(\d{0,3})\})/.exec(this.#source.slice(this.#at)) ?? []
    this.#at += written.length
    if (written === '') return [1, 1]
    if (fixed === undefined) return [written === '+' ? 1 : 0, written === '?' ? 1 : Number.POSITIVE_INFINITY]
    const min = Number(fixed)
    const max = comma === '' ? min : upper === '' ? Number.POSITIVE_INFINITY : Number(upper)
    if (max < min) throw this.#refused(`${written} has its bounds in the wrong order`)
    return [min, max]
  }

  #atom(): Part {
    const letter = this.#source[this.#at] ?? ''
    if (letter === '(') return this.#group()
    if (letter === '[') return this.#position(this.#class())
    if ('?*+{^$)'.includes(letter))
      throw this.#refused(`'${letter}' cannot stand here; write \\${letter} for the character itself`)
    this.#at++
    if (letter === '.') return this.#position((code) => code !== 10 && code !== 13)
    if (letter !== '\\') return this.#position(this.#same(letter.charCodeAt(0)))
    const set = this.#escape()
    return this.#position(typeof set === 'number' ? this.#same(set) : set)
  }

  #group(): Part {
    this.#at++
    if (this.#source.startsWith('?:', this.#at)) this.#at += 2
    else if (this.#source[this.#at] === '?')
      throw this.#refused(`'(?' starts only a group '(?:'; no look-around, no names`)
    const part = this.#alternatives()
    if (this.#source[this.#at] !== ')') throw this.#refused(`'(' has no ')'`)
    this.#at++
    return part
  }

  /** A character's code, or a set. */
  #escape(): number | CodeSet {
    const letter = this.#source[this.#at++] ?? ''
    const set = SETS[letter]
    if (set !== undefined) return set
    const control = CONTROL[letter]
    if (control !== undefined) return control
    const hex = /^(?:u([\da-f]{4})|x([\da-f]{2}))/i.exec(this.#source.slice(this.#at - 1))
    if (hex !== null) {
      this.#at += hex[0].length - 1
      return Number.parseInt(hex[1] ?? hex[2] ?? '', 16)
    }
    if (letter === '' || /[A-Za-z\d]/.test(letter)) {
      throw this.#refused(`'\\${letter}' is not supported; \\b only at the two ends, no references to groups`)
    }
    return letter.charCodeAt(0)
  }

  #class(): CodeSet {
    const [, negated = ''] = /^\[(\^?)/.exec(this.#source.slice(this.#at)) ?? []
    this.#at += 1 + negated.length
    const sets: CodeSet[] = []
    while (this.#source[this.#at] !== ']') {
      if (this.#at >= this.#source.length) throw this.#refused(`'[' has no ']'`)
      const low = this.#member()
      if (typeof low === 'number' && this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']') {
        this.#at++
        const high = this.#member()
        if (typeof high !== 'number' || high < low)
          throw this.#refused('a range in [ ] has its ends in the wrong order')
        sets.push((code) => this.#forms(code).some((form) => form >= low && form <= high))
      } else sets.push(typeof low === 'number' ? this.#same(low) : low)
    }
    this.#at++
    const oneOf: CodeSet = (code) => sets.some((set) => set(code))
    return negated === '' ? oneOf : not(oneOf)
  }

  #member(): number | CodeSet {
    const letter = this.#source[this.#at++] ?? ''
    return letter === '\\' ? this.#escape() : letter.charCodeAt(0)
  }

  #same(wanted: number): CodeSet {
    return (code) => code === wanted || (this.#ignoreCase && this.#forms(code).includes(wanted))
  }

  #forms(code: number): readonly number[] {
    if (!this.#ignoreCase) return [code]
    const letter = String.fromCharCode(code)
    return [code, letter.toLowerCase().charCodeAt(0), letter.toUpperCase().charCodeAt(0)]
  }

  #position(set: CodeSet): Part {
    if (this.sets.length === POSITIONS_MAX)
      throw this.#refused(`it has more than ${POSITIONS_MAX} characters when written out`)
    const position = this.sets.push(set) - 1
    this.follow.push(new Set())
    return { first: [position], last: [position], empty: false }
  }

  #then(one: Part, other: Part): Part {
    this.#connect(one.last, other.first)
    return {
      first: one.empty ? [...one.first, ...other.first] : one.first,
      last: other.empty ? [...one.last, ...other.last] : other.last,
      empty: one.empty && other.empty,
    }
  }

  #connect(from: readonly number[], to: readonly number[]): void {
    this.#edges += from.length * to.length
    if (this.#edges > EDGES_MAX)
      throw this.#refused('it has too many alternatives that repeat; split it into several rules')
    for (const position of from) for (const next of to) this.follow[position]?.add(next)
  }

  #refused(why: string): OptionError {
    return new OptionError(`the pattern ${JSON.stringify(this.#source)} cannot be used: ${why} (at ${this.#at})`)
  }
}
