/** A whole number from `random`. */
export function between(random: () => number, from: number, to: number): number {
  return Math.round(from + random() * (to - from))
}
