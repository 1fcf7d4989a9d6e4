import { setTimeout as realSleep } from 'node:timers/promises'
import type { Case } from './case.ts'
import type { CreateHarness } from './harness.ts'
import { Stage } from './stage.ts'

export interface RunOptions {
  /** How long claims hold in the cases. Engines on real time wait this long whenever a lease has to run out. */
  readonly leaseMs?: number
  /** Real time that one case may take. */
  readonly caseMs?: number
  /**
   * Real time that threads, sockets and servers may still need once the engine's own time has passed: much on a loaded
   * machine, little for engines that are meant to fail.
   */
  readonly graceMs?: number
}

/** What became of a case. An excuse is a sentence, and its twin has passed. */
export type CaseResult =
  | { readonly name: string; readonly status: 'kept' }
  | { readonly name: string; readonly status: 'excused'; readonly sentence: string }
  | { readonly name: string; readonly status: 'failed'; readonly error: unknown }

const LEASE_MS = 500
const CASE_MS = 180_000
const GRACE_MS = 10_000

let stages = 0

/** Runs one case, or its twin, on a store of its own. */
export async function runCase(create: CreateHarness, candidate: Case, options: RunOptions = {}): Promise<CaseResult> {
  const { name } = candidate
  stages += 1
  try {
    const harness = await create()
    const stage = new Stage(harness, {
      type: `case-${stages}`,
      leaseMs: options.leaseMs ?? LEASE_MS,
      graceMs: options.graceMs ?? GRACE_MS,
    })
    const sentence = candidate.excuse?.(harness.engine) ?? null
    try {
      await atMost(options.caseMs ?? CASE_MS, sentence === null ? candidate.run(stage) : refuse(candidate, stage))
    } finally {
      await dismantle(stage, options.caseMs ?? CASE_MS)
    }
    return sentence === null ? { name, status: 'kept' } : { name, status: 'excused', sentence }
  } catch (error) {
    return { name, status: 'failed', error }
  }
}

/** The suite as a function: for engines that must fail it, and for tools. */
export async function runCases(
  create: CreateHarness,
  cases: readonly Case[],
  options: RunOptions & { readonly untilFailure?: boolean } = {},
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = []
  for (const candidate of cases) {
    const result = await runCase(create, candidate, options)
    results.push(result)
    if (options.untilFailure === true && result.status === 'failed') break
  }
  return results
}

async function refuse(candidate: Case, stage: Stage): Promise<void> {
  if (candidate.refusal === undefined) throw new Error(`'${candidate.name}' has an excuse and no twin; give it one`)
  await candidate.refusal(stage)
}

/** A wrong engine may also hang in its close; the next case must not wait for that. */
async function dismantle(stage: Stage, ms: number): Promise<void> {
  await atMost(ms, stage.close()).finally(() => atMost(ms, stage.harness.destroy()))
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  const limit = new AbortController()
  const late = realSleep(ms, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`the case took longer than ${ms} ms`)
  })
  late.catch(() => {})
  try {
    await Promise.race([work, late])
  } finally {
    limit.abort()
  }
}
