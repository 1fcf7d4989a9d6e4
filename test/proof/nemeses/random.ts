/** What a nemesis draws from the random numbers of its seed. */

/** A whole number from `least` to `most`. */
export function between(random: () => number, least: number, most: number): number {
  return Math.round(least + random() * (most - least))
}

export function pick<Item>(random: () => number, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}
