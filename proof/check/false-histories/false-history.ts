import type { Facts } from '../check.ts'
import { Script } from './script.ts'

/** A history in which one thing breaks the contract, and the same one without it. */
export interface FalseHistory {
  readonly name: string
  /** The rule that refuses it, and the words in which it says why. */
  readonly rule: string
  readonly sentence: RegExp
  readonly facts: () => Facts
  /** It differs only in that the contract allows it. */
  readonly allowed: () => Facts
}

/**
 * `write` tells a story that breaks the rule when it is given true, and a sound one when it is given false. So a false
 * history differs from a sound one in nothing else.
 */
export function falsely(
  name: string,
  [rule, sentence]: readonly [string, RegExp],
  write: (script: Script, isFalse: boolean) => Facts | Script,
): FalseHistory {
  const facts = (isFalse: boolean): Facts => {
    const written = write(new Script(), isFalse)
    return written instanceof Script ? written.facts() : written
  }
  return { name, rule, sentence, facts: () => facts(true), allowed: () => facts(false) }
}
