/** Names that are looked for together, so that the headers of a record are gone through once for all of them. */
export class HeaderNames {
  readonly names: readonly string[]
  /** The texts of a record that has none of them. */
  readonly none: readonly (string | null)[]
  /** By the length of the name, where in the list such names stand. */
  readonly #byLength: readonly (readonly number[])[]

  /** They are ASCII: as many bytes as letters. */
  constructor(names: readonly string[]) {
    this.names = names
    this.none = names.map(() => null)
    const longest = Math.max(...names.map(({ length }) => length))
    this.#byLength = Array.from({ length: longest + 1 }, (_, length) =>
      names.flatMap((name, index) => (name.length === length ? [index] : [])),
    )
  }

  /** The place of the name that these bytes are; -1 for none. */
  placeOf(bytes: Buffer, at: number, length: number): number {
    const candidates = this.#byLength[length]
    if (candidates === undefined) return -1
    for (let index = 0; index < candidates.length; index += 1) {
      const place = candidates[index] ?? -1
      if (isAt(bytes, at, this.names[place] ?? '')) return place
    }
    return -1
  }
}

/** From behind, because our names begin alike. */
function isAt(bytes: Buffer, at: number, name: string): boolean {
  for (let index = name.length - 1; index >= 0; index -= 1) {
    if (bytes[at + index] !== name.charCodeAt(index)) return false
  }
  return true
}
