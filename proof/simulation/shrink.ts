/** Makes a failing plan small: leaves out clients, operations, jobs, faults and choices while the same rule stays broken. */
import type { Violation } from '../check/check.ts'
import type { Operation } from '../workload/operation.ts'
import type { Plan } from './plan.ts'
import { type Simulated, simulate } from './simulate.ts'
import type { CreateStore } from './stores.ts'

export interface ShrinkOptions {
  readonly create: CreateStore
  /** The failing run. */
  readonly failed: Simulated
  /** How many simulations it may take. Default: 300. */
  readonly runs?: number
}

const RUNS = 300

/**
 * The smallest plan that was found to break the same rule, as it ran.
 *
 * @example
 * const { plan, verdict } = await shrink({ create: memoryStore, failed: await simulate({ create: memoryStore, plan: 7 }) })
 */
export async function shrink({ create, failed, runs = RUNS }: ShrinkOptions): Promise<Simulated> {
  const broken = kindOf(failed.verdict.violations[0])
  let [smallest, left] = [failed, runs]
  const isSmaller = async (plan: Plan): Promise<boolean> => {
    if (left <= 0) return false
    left -= 1
    const run = await simulate({ create, plan })
    if (!run.verdict.violations.some((violation) => kindOf(violation) === broken)) return false
    smallest = { ...run, plan }
    return true
  }
  for (let before = Number.POSITIVE_INFINITY; sizeOf(smallest.plan) < before && left > 0; ) {
    before = sizeOf(smallest.plan)
    await shorten(smallest.plan.clients, (clients) => isSmaller({ ...smallest.plan, clients }))
    for (const index of smallest.plan.clients.keys()) {
      const withOperations = (operations: readonly Operation[]): Plan => ({
        ...smallest.plan,
        clients: smallest.plan.clients.with(index, operations),
      })
      await shorten(smallest.plan.clients[index] ?? [], (operations) => isSmaller(withOperations(operations)))
      for (const [place, operation] of (smallest.plan.clients[index] ?? []).entries()) {
        if (operation.do !== 'enqueue') continue
        const now = (): readonly Operation[] => smallest.plan.clients[index] ?? []
        await shorten(operation.jobs, (jobs) => isSmaller(withOperations(now().with(place, { ...operation, jobs }))))
      }
    }
    await shorten(smallest.plan.faults, (faults) => isSmaller({ ...smallest.plan, faults }))
    if (smallest.plan.workers > 1) await isSmaller({ ...smallest.plan, workers: smallest.plan.workers - 1 })
    await calmChoices(smallest.plan.choices ?? [], (choices) => isSmaller({ ...smallest.plan, choices }))
  }
  return smallest
}

/** The rule, and what it says without the names in it. */
function kindOf(violation: Violation | undefined): string | null {
  if (violation === undefined) return null
  return `${violation.rule}: ${violation.sentence.replaceAll(/[\d{["'].*/g, '').slice(0, 40)}`
}

/** What a reader has to look at. */
export function sizeOf({ clients, faults, choices, workers }: Plan): number {
  const operations = clients.flat()
  const jobs = operations.flatMap((operation) => (operation.do === 'enqueue' ? operation.jobs : []))
  const chosen = (choices ?? []).filter((choice) => choice !== 0).length
  return clients.length + operations.length + jobs.length + faults.length + workers + chosen
}

/** Leaves out ever smaller parts. */
async function shorten<Item>(
  items: readonly Item[],
  isStill: (fewer: readonly Item[]) => Promise<boolean>,
): Promise<void> {
  let rest = items
  for (let part = Math.ceil(rest.length / 2); part >= 1; part = part === 1 ? 0 : Math.ceil(part / 2)) {
    for (let at = 0; at < rest.length; ) {
      const fewer = [...rest.slice(0, at), ...rest.slice(at + part)]
      if (fewer.length < rest.length && (await isStill(fewer))) rest = fewer
      else at += part
    }
  }
}

/** Ever smaller parts of the choices become the plain one: what is oldest happens. */
async function calmChoices(
  choices: readonly number[],
  isStill: (calmer: readonly number[]) => Promise<boolean>,
): Promise<void> {
  let now = choices
  for (let part = Math.ceil(now.length / 2); part >= 8; part = Math.floor(part / 2)) {
    for (let at = 0; at < now.length; at += part) {
      const calmer = now.map((choice, index) => (index >= at && index < at + part ? 0 : choice))
      const isCalmer = calmer.some((choice, index) => choice !== now[index])
      if (isCalmer && (await isStill(calmer))) now = calmer
    }
  }
}
