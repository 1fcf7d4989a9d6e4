/** How many seeds it takes to find each wrong engine. */
import { mutants } from '../../../conformance/mutants/index.ts'
import { timingMutants } from '../../../conformance/mutants/timing.ts'
import { alteredStore } from '../../../proof/simulation/altered-store.ts'
import { simulate } from '../../../proof/simulation/simulate.ts'
import { memoryStore } from '../../../proof/simulation/stores.ts'

export interface Found {
  readonly seeds: number
  readonly rule: string
  readonly sentence: string
}

/** Null when none of the seeds finds it. */
export async function findMutant(
  alter: Parameters<typeof alteredStore>[1],
  seeds: number,
  from = 1,
): Promise<Found | null> {
  for (let seed = from; seed < from + seeds; seed += 1) {
    const { verdict } = await simulate({ create: alteredStore(memoryStore, alter), plan: seed })
    const [first] = verdict.violations
    if (first !== undefined) return { seeds: seed - from + 1, rule: first.rule, sentence: first.sentence }
  }
  return null
}

/** Prints the table; true when each was found. */
export async function tryMutants(seeds: number): Promise<boolean> {
  const wrong = [...mutants, ...timingMutants]
  let [found, most] = [0, 0]
  console.log('| flaw | found after seeds | by |\n| --- | --- | --- |')
  for (const { flaw, alter } of wrong) {
    const hit = await findMutant(alter, seeds)
    if (hit !== null) {
      found += 1
      most = Math.max(most, hit.seeds)
    }
    console.log(`| ${flaw} | ${hit?.seeds ?? 'not found'} | ${hit === null ? '' : hit.rule} |`)
  }
  console.log(`\n${found} of ${wrong.length} wrong engines found, each within ${most} seeds`)
  return found === wrong.length
}
